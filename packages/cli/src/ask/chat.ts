import { A2AError } from '@hopline/a2a';
import { type ArtifactFolder, noticePrinter, wrap } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import type { Conversation } from '../command/conversations.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { showError } from '../command/show-error.ts';
import { listAgents } from './agents.ts';
import { AGENT, ANSWER, CONTEXT, CONTINUE, OUT } from './answer-options.ts';
import { type ConversationOptions, conversationOf, messageOf } from './ask.ts';
import { ChatInput } from './chat-input.ts';
import { outFolder } from './out-folder.ts';
import { showStream } from './show-stream.ts';
import { StreamOutcome } from './stream-outcome.ts';

const HELP = [
  '/agent NAME  ask this agent from now on; without NAME, the skills of the agents decide',
  '/agents      list the agents',
  '/cancel      cancel the answer in progress',
  '/new         begin a new conversation',
  '/quit        leave; so does the end of the input',
  '//TEXT       send a text that begins with a slash',
];

export const chat = command({
  name: 'chat',
  summary: 'asks several questions in one conversation',
  details: 'each line of standard input is a message',
  options: { agent: AGENT, context: CONTEXT, continue: CONTINUE, out: OUT, answer: ANSWER },
  notes:
    '/help lists the commands within a chat. Ctrl-C cancels the answer in progress; a second one leaves. ' +
    'Without a terminal, standard output has only the answers, each ended by a line feed, and the exit code is that of the last one.',
  run({ options: { out, ...options } }, context) {
    return new Chat(context, { ...options, folder: outFolder(out) }).run();
  },
});

type ChatOptions = ConversationOptions & { folder: ArtifactFolder | undefined; answer: readonly string[] };

type RunningTurn = { outcome: StreamOutcome; cancel: 'no' | 'requested' | 'sent' };

class Chat {
  readonly #context: CommandContext;
  readonly #options: ChatOptions;
  readonly #input: ChatInput;
  /** Aborts when the user leaves. A task in progress continues. */
  readonly #leaving = new AbortController();
  #at: Partial<Conversation>;
  /** The newest answer asks to approve a call. */
  #asksApproval = false;
  #turn: RunningTurn | undefined;
  #interrupts = 0;
  #code: ExitCode = EXIT.ok;

  constructor(context: CommandContext, options: ChatOptions) {
    this.#context = { ...context, signal: AbortSignal.any([context.signal, this.#leaving.signal]) };
    this.#options = options;
    this.#at = conversationOf(context, options);
    this.#input = new ChatInput(context.stdin, context.output, {
      onInterrupt: () => this.#interrupted(),
      onLine: () => this.#takeCommandsOfTurn(),
    });
  }

  async run(): Promise<ExitCode> {
    const { output, signal } = this.#context;
    this.#context.takeInterrupts(() => this.#interrupted());
    const stop = () => this.#input.close();
    signal.addEventListener('abort', stop, { once: true });
    output.note('/help lists the commands, /quit leaves');
    try {
      for (;;) {
        const line = await this.#input.next(this.#prompt());
        if (line === undefined || signal.aborted || line.trim() === '/quit') break;
        this.#interrupts = 0;
        await this.#line(line);
      }
      if (signal.aborted) return EXIT.interrupted;
      // The exit code shows a script how its last message ended. A person has already seen that on the terminal.
      return this.#context.stdin.isTTY ? EXIT.ok : this.#code;
    } finally {
      signal.removeEventListener('abort', stop);
      this.#input.close();
      this.#context.takeInterrupts(undefined);
    }
  }

  #prompt(): string {
    const agent = this.#at.agent === undefined ? '' : `${this.#at.agent} `;
    if (this.#at.taskId === undefined) return `${agent}> `;
    return `${agent}(${this.#asksApproval ? 'yes approves, other words refuse' : 'waits for your answer'}) > `;
  }

  async #line(line: string): Promise<void> {
    const text = line.startsWith('//') ? line.slice(1) : line;
    if (line.startsWith('/') && !line.startsWith('//')) await this.#command(line.trim());
    else if (text.trim() !== '') await this.#ask(text);
  }

  async #command(line: string): Promise<void> {
    const { output } = this.#context;
    const [name = '', ...words] = line.split(/\s+/);
    if (name === '/help')
      for (const one of HELP) for (const part of wrap(one, output.columns ?? Number.POSITIVE_INFINITY)) output.artifact(part);
    else if (name === '/agents') await this.#attempt(() => listAgents({ ...this.#context, json: false }));
    else if (name === '/cancel') output.artifact('no answer is in progress');
    else if (name === '/new') {
      this.#at = { ...(this.#at.agent !== undefined && { agent: this.#at.agent }) };
      output.artifact('a new conversation begins with your next message');
    } else if (name === '/agent') {
      const [agent] = words;
      const { agent: _before, ...at } = this.#at;
      this.#at = { ...at, ...(agent !== undefined && { agent }) };
      output.artifact(agent === undefined ? 'the skills of the agents decide' : `the next message goes to ${agent}`);
    } else output.warn(`unknown command ${name}; /help lists the commands`);
  }

  async #ask(text: string): Promise<void> {
    const { client, conversations, output, url } = this.#context;
    const { contextId, taskId, agent } = this.#at;
    const outcome = new StreamOutcome(taskId);
    this.#turn = { outcome, cancel: 'no' };
    await this.#attempt(async () => {
      const message = messageOf({ text, contextId, taskId, agent });
      const items = client.stream(message, { signal: this.#context.signal, onNotice: noticePrinter(output) });
      this.#takeCommandsOfTurn();
      const { folder, answer } = this.#options;
      const howToChoose = (agents: string) => `name one with: /agent ${agents}`;
      const printer = { continued: taskId !== undefined, folder, answerNames: answer, inConversation: true, howToChoose };
      return showStream(this.#context, { items: this.#cancelable(items), outcome, ...printer });
    });
    this.#turn = undefined;
    output.endLine();
    const reached = outcome.conversation(agent);
    if (reached === undefined) return;
    this.#asksApproval = outcome.approval !== undefined;
    this.#at = reached;
    conversations.remember(url, reached);
  }

  /** An error of one message does not end the chat. */
  async #attempt(run: () => Promise<ExitCode>): Promise<void> {
    try {
      this.#code = await run();
    } catch (thrown) {
      if (this.#context.signal.aborted) return;
      if (!(thrown instanceof A2AError)) throw thrown;
      showError(thrown, this.#context);
      this.#code = EXIT.failed;
    }
  }

  /** Yields the items of a stream. A cancellation that waits for the task id is sent when the first event arrives. */
  async *#cancelable<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    for await (const item of items) {
      yield item;
      // By now the consumer has recorded the item, and with it the task id.
      if (this.#turn?.cancel === 'requested') this.#cancel();
    }
  }

  #interrupted(): void {
    this.#interrupts += 1;
    const { output } = this.#context;
    if (this.#interrupts > 1) this.#leaving.abort(new Error('interrupted'));
    else if (this.#turn === undefined) this.#input.aside('Ctrl-C again leaves; so does /quit');
    else {
      output.artifact('canceling; Ctrl-C again leaves');
      this.#cancel();
    }
  }

  /** Runs waiting commands about the current answer. Other lines wait for its end. */
  #takeCommandsOfTurn(): void {
    if (this.#turn === undefined) return;
    if (this.#input.takeIf(line => line === '/cancel')) this.#cancel();
    if (this.#context.stdin.isTTY && this.#input.takeIf(line => line === '/quit')) this.#leaving.abort(new Error('interrupted'));
  }

  #cancel(): void {
    const turn = this.#turn;
    if (turn === undefined || turn.cancel === 'sent') return;
    const { taskId } = turn.outcome;
    turn.cancel = taskId === undefined ? 'requested' : 'sent';
    if (taskId === undefined) return;
    const { client, output, signal } = this.#context;
    client.cancel(taskId, { signal }).catch((error: unknown) => {
      if (!signal.aborted)
        output.warn(`the answer cannot be canceled: ${error instanceof Error ? error.message : 'unknown error'}`);
    });
  }
}
