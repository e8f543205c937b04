import type { Metadata } from '@hopline/a2a';
import type { OutgoingMessage } from '@hopline/client';
import { shellQuoted } from '@hopline/local-cluster';
import { type ArtifactFolder, noticePrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import type { Conversation } from './conversations.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';
import { UsageError } from './usage-error.ts';

export type AskOptions = {
  text: string;
  agent: string | undefined;
  context: string | undefined;
  continue: boolean;
  task: string | undefined;
  folder: ArtifactFolder | undefined;
  answer: readonly string[];
};

/** `hopline ask`: sends a message and prints the stream of its turn. */
export async function ask(context: CommandContext, options: AskOptions): Promise<ExitCode> {
  const { text, folder, answer } = options;
  const { contextId, taskId, agent } = conversationOf(context, options);
  return showAnswer(context, { message: messageOf({ text, contextId, taskId, agent }), taskId, agent, folder, answer });
}

export type AnswerOptions = Pick<AskOptions, 'agent' | 'folder' | 'answer'> & {
  message: OutgoingMessage;
  metadata?: Metadata;
  /** That the message continues. */
  taskId?: string | undefined;
  /** Receives the new task, before the hints. */
  onTask?: (taskId: string) => void;
};

/** Sends a message, prints the stream of its turn and how the conversation goes on. */
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
  const goesOn = remembered ? '--continue' : `--context ${shellQuoted(reached.contextId)}`;
  if (code === EXIT.waiting) output.warn(`reply with: ${context.commandLine(`ask --task ${outcome.taskId}`)} TEXT`);
  else if (!context.json)
    output.note(`context ${reached.contextId}; continue with: ${context.commandLine(`ask ${goesOn}`)} TEXT`);
  return code;
}

export type Addressed = { text: string; contextId: string | undefined; taskId: string | undefined; agent: string | undefined };

export function messageOf({ text, contextId, taskId, agent }: Addressed): OutgoingMessage {
  return {
    parts: [{ text }],
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(agent !== undefined && { metadata: { agent } }),
  };
}

export type ConversationOptions = Pick<AskOptions, 'agent' | 'context' | 'continue'> & { task?: string | undefined };

/** The conversation that the options name. Throws UsageError when there is none to continue. */
export function conversationOf(
  { conversations, url }: Pick<CommandContext, 'conversations' | 'url'>,
  { agent, context, continue: continues, task }: ConversationOptions,
): Partial<Conversation> {
  const last = continues ? conversations.last(url) : undefined;
  if (continues && last === undefined)
    throw new UsageError(`no conversation with ${url} to continue: ask without --continue first`);
  const named = { ...(agent !== undefined && { agent }) };
  // A task has a context already.
  if (last !== undefined) return { ...last, ...named };
  return { ...(context !== undefined && { contextId: context }), ...(task !== undefined && { taskId: task }), ...named };
}
