import type { Metadata } from '@hopline/a2a';
import type { OutgoingMessage } from '@hopline/client';
import { shellQuoted } from '@hopline/local-cluster';
import { type ArtifactFolder, noticePrinter } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import type { Conversation } from '../command/conversations.ts';
import { EXIT, EXIT_CODES_NOTE, type ExitCode } from '../command/exit-code.ts';
import { text } from '../command/options.ts';
import { optional } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { AGENT, ANSWER, CONTEXT, CONTINUE, OUT } from './answer-options.ts';
import { askApproval } from './ask-approval.ts';
import { outFolder } from './out-folder.ts';
import { readQuestion } from './read-question.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

export const ask = command({
  name: 'ask',
  subject: optional('[TEXT|-]', 'one text (put it in quotes)'),
  summary: 'sends a question and prints the answer as it arrives',
  details: 'without TEXT, or with -, reads standard input',
  options: {
    agent: AGENT,
    context: CONTEXT,
    continue: CONTINUE,
    task: text('ID', 'replies to a task that waits for input'),
    out: OUT,
    answer: ANSWER,
  },
  notes: EXIT_CODES_NOTE,
  async run({ subject, options }, context) {
    // Created before anything is sent, because a folder that cannot be created is a usage error.
    const folder = outFolder(options.out);
    const question = await questionOf(subject, context);
    const { contextId, taskId, agent } = conversationOf(context, options);
    const message = messageOf({ text: question, contextId, taskId, agent });
    return showAnswer(context, { message, taskId, agent, folder, answer: options.answer });
  },
});

async function questionOf(given: string | undefined, context: CommandContext): Promise<string> {
  if (given === undefined && context.stdin.isTTY) throw new UsageError('nothing to ask; see hopline ask --help');
  if (given === undefined || given === '-') return readQuestion(context.stdin, context.signal);
  if (given.trim() === '') throw new UsageError(`nothing to ask: the text ${given === '' ? 'is empty' : 'has only white space'}`);
  return given;
}

export type AnswerOptions = {
  message: OutgoingMessage;
  agent: string | undefined;
  folder: ArtifactFolder | undefined;
  /** Names of the artifacts that are the answer. */
  answer: readonly string[];
  metadata?: Metadata;
  /** The task that the message continues. */
  taskId?: string | undefined;
  /** Receives the new task, before the hints. */
  onTask?: (taskId: string) => void;
};

/** Sends a message, and prints the stream of its turn and how to continue the conversation. */
export async function showAnswer(context: CommandContext, options: AnswerOptions): Promise<ExitCode> {
  const { client, output, signal, conversations, url } = context;
  const { message, metadata, taskId, agent, folder, answer, onTask } = options;
  const outcome = new StreamOutcome(taskId);
  const items = client.stream(message, { signal, onNotice: noticePrinter(output), ...(metadata && { metadata }) });
  const howToChoose = (agents: string) => `name one with: ${context.commandLine(`ask --agent ${agents}`)} TEXT`;
  const printer = { continued: taskId !== undefined, folder, answerNames: answer, howToChoose };
  const code = await showStream(context, { items, outcome, ...printer });
  const reached = outcome.conversation(agent);
  if (reached === undefined) return code;
  if (outcome.taskId !== undefined) onTask?.(outcome.taskId);
  const remembered = conversations.remember(url, reached);
  const decision = await askApproval(context, outcome);
  if (decision !== undefined && outcome.taskId !== undefined) {
    const next = { taskId: outcome.taskId, contextId: reached.contextId, parts: decision };
    return showAnswer(context, { message: next, agent, folder, answer, taskId: outcome.taskId });
  }
  const goesOn = remembered ? '--continue' : `--context ${shellQuoted(reached.contextId)}`;
  const reply = context.commandLine(`ask --task ${outcome.taskId}`);
  if (outcome.approval !== undefined) output.warn(`approve with: ${reply} yes; refuse with: ${reply} REASON`);
  else if (code === EXIT.waiting) output.warn(`reply with: ${reply} TEXT`);
  else if (!context.json)
    output.note(`context ${reached.contextId}; continue with: ${context.commandLine(`ask ${goesOn}`)} TEXT`);
  return code;
}

type Addressed = { text: string; contextId: string | undefined; taskId: string | undefined; agent: string | undefined };

export function messageOf({ text, contextId, taskId, agent }: Addressed): OutgoingMessage {
  return {
    parts: [{ text }],
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(agent !== undefined && { metadata: { agent } }),
  };
}

export type ConversationOptions = {
  agent: string | undefined;
  context: string | undefined;
  continue: boolean;
  task?: string | undefined;
};

/** The conversation that the options name. Throws UsageError when there is none to continue. */
export function conversationOf(
  { conversations, url }: Pick<CommandContext, 'conversations' | 'url'>,
  { agent, context, continue: continues, task }: ConversationOptions,
): Partial<Conversation> {
  const last = continues ? conversations.last(url) : undefined;
  if (continues && last === undefined)
    throw new UsageError(`no conversation with ${url} to continue: ask without --continue first`);
  const named = { ...(agent !== undefined && { agent }) };
  // A task already has a context.
  if (last !== undefined) return { ...last, ...named };
  return { ...(context !== undefined && { contextId: context }), ...(task !== undefined && { taskId: task }), ...named };
}
