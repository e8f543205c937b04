import { A2AError } from '@hopline/a2a/client';
import {
  CHAT_TASKS_MAX,
  type ShownTurn,
  TurnEncoder,
  turnToResume,
  type UiChunk,
  uiChatRequestOf,
} from '@hopline/ui-message-stream';
import { randomId } from './outgoing.ts';
import { BEGINNING, type StreamItem } from './stream-position.ts';
import type { TaskClient } from './task-client.ts';

/** How a transport reaches agents. */
export type HoplineChatTransportOptions = {
  client: TaskClient;
  /** Name of an agent. `body: { agent }` of a message takes precedence. Default: the server chooses. */
  agent?: string | undefined;
  /**
   * `cancel` (default): `stop` of the chat cancels the task, even after a resume. `leave`: it only closes the stream. `useChat` stops the chats
   * that it creates when their component leaves the page, so a page on which answers continue creates its `Chat` outside, or leaves.
   */
  onStop?: 'cancel' | 'leave' | undefined;
};

/** The members of the AI SDK's options that this transport reads. */
type SendOptions = {
  trigger: 'submit-message' | 'regenerate-message';
  chatId: string;
  /** Id of a message that the user has edited. */
  messageId?: string | undefined;
  messages: readonly unknown[];
  abortSignal: AbortSignal | undefined;
  body?: object;
};
type ReconnectOptions = { chatId: string; abortSignal?: AbortSignal };

/**
 * A `ChatTransport` of the AI SDK over A2A: `useChat({ transport: new HoplineChatTransport({ client }) })`. It resumes a broken stream by itself
 * at its cursor, so the chat sees no error. A chat is a context, and its id the context id.
 */
export class HoplineChatTransport {
  /** A resumed stream has the whole message again. */
  readonly resumeStreamIsReplay = true;
  readonly #client: TaskClient;
  readonly #agent: string | undefined;
  readonly #cancels: boolean;
  /** Number of the newest resume of each chat. */
  readonly #resumes = new Map<string, number>();

  constructor({ client, agent, onStop = 'cancel' }: HoplineChatTransportOptions) {
    this.#client = client;
    this.#agent = agent;
    this.#cancels = onStop === 'cancel';
  }

  /** Sends the last message of a chat, and streams the answer. `useChat` calls this. */
  async sendMessages(options: SendOptions): Promise<ReadableStream<UiChunk>> {
    const { abortSignal, body } = options;
    abortSignal?.throwIfAborted();
    const { contextId, messageId, parts, taskId, turn: shown } = uiChatRequestOf(options, randomId);
    const { agent = this.#agent } = { ...body } as { agent?: string };
    const close = new AbortController();
    const items = this.#client.stream(
      { messageId, contextId, parts, ...(taskId !== undefined && { taskId }) },
      { signal: close.signal, agent },
    );
    const turn = new TurnChunks(items, close, shown);
    abortSignal?.addEventListener('abort', () => void this.#stop(turn), { once: true });
    return turn.stream(abortSignal);
  }

  /** Streams the answer that runs, from its beginning; null if none does. `useChat` calls this. */
  async reconnectToStream({ chatId, abortSignal }: ReconnectOptions): Promise<ReadableStream<UiChunk> | null> {
    const number = (this.#resumes.get(chatId) ?? 0) + 1;
    this.#resumes.set(chatId, number);
    const { tasks } = await this.#client.list({ contextId: chatId, pageSize: CHAT_TASKS_MAX });
    const resumed = turnToResume(tasks, Date.now());
    if (resumed === undefined) return null;
    const close = new AbortController();
    const items = this.#client.subscribe(resumed.task.id, { cursor: BEGINNING, signal: close.signal });
    const turn = new TurnChunks(items, close, resumed.turn);
    const stop = () => {
      // The AI SDK also aborts a resume when the next one begins, in the same turn of the event loop, as in React's strict mode.
      setTimeout(() => (this.#resumes.get(chatId) === number ? void this.#stop(turn) : turn.leave()));
    };
    if (abortSignal?.aborted) stop();
    else abortSignal?.addEventListener('abort', stop, { once: true });
    return turn.stream(abortSignal);
  }

  async #stop(turn: TurnChunks): Promise<void> {
    try {
      const taskId = this.#cancels && !turn.ended ? await turn.taskId() : undefined;
      if (taskId !== undefined) await this.#client.cancel(taskId);
    } catch (thrown) {
      // The AI SDK has no place for an error of a stop. The chat shows the task as it is when it resumes.
      if (!(thrown instanceof A2AError) && !turn.hasLeft) throw thrown;
    } finally {
      turn.leave();
    }
  }
}

/** The chunks of one turn, read once and on demand. */
class TurnChunks {
  readonly #items: AsyncGenerator<StreamItem, void, undefined>;
  readonly #close: AbortController;
  readonly #turn: TurnEncoder;
  #reading: Promise<UiChunk[] | undefined> | undefined;

  constructor(items: AsyncGenerator<StreamItem, void, undefined>, close: AbortController, turn: ShownTurn) {
    this.#items = items;
    this.#close = close;
    this.#turn = new TurnEncoder(turn);
  }

  get ended(): boolean {
    return this.#turn.ended;
  }

  get hasLeft(): boolean {
    return this.#close.signal.aborted;
  }

  /** The id comes with the first event of a task. Undefined if the stream ends before. */
  async taskId(): Promise<string | undefined> {
    while (this.#turn.taskId === undefined) if ((await this.#read()) === undefined) break;
    return this.#turn.taskId;
  }

  /** Closes the connection. The task continues. */
  leave(): void {
    this.#close.abort(new DOMException('the chat has left the stream', 'AbortError'));
  }

  stream(abortSignal: AbortSignal | undefined): ReadableStream<UiChunk> {
    return new ReadableStream<UiChunk>(
      {
        pull: async controller => {
          let chunks: UiChunk[] | undefined = [];
          while (chunks?.length === 0 && !this.ended) chunks = await this.#read();
          for (const chunk of chunks ?? []) controller.enqueue(chunk);
          if (chunks !== undefined && !this.ended) return;
          this.leave();
          controller.close();
        },
        // A stop reads on until it knows the task, and then leaves by itself.
        cancel: () => (abortSignal?.aborted ? undefined : this.leave()),
      },
      { highWaterMark: 0 },
    );
  }

  /** The chunks of the next event; undefined at the end. A stop and the page may wait for the same event. */
  #read(): Promise<UiChunk[] | undefined> {
    this.#reading ??= this.#items
      .next()
      .then(({ done, value }) => (done ? undefined : this.#turn.add(value)))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }
}
