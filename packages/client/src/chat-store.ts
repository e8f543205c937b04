import { isInProgress, isTerminal, type Message, type Part, type Task, textOf } from '@hopline/a2a/client';
import { type ClientView, statusTimeOf, ViewFold, type ViewQuestion } from '@hopline/task-view';
import { randomId } from './outgoing.ts';
import type { TaskClient } from './task-client.ts';
import { type TaskStore, type TaskStoreValue, taskStore } from './task-store.ts';
import { NoAnswerError } from './watch.ts';

/** A message of a chat. Values are immutable. */
export type ChatMessage = {
  /** The messageId of a user message. */
  id: string;
  role: 'user' | 'agent';
  text: string;
  /** Question with which the agent ended this turn. */
  question: string | undefined;
  /** The task of an agent message, with its tools, files and plan. */
  view: ClientView | undefined;
  /** Why this user message was not sent. The next `send` is another message. */
  error: unknown;
};

/** A chat as a page shows it. Values are immutable. */
export type ChatValue = {
  messages: readonly ChatMessage[];
  /** `submitted`: nothing of the answer has arrived. `ready`: the chat waits for the user. */
  status: 'loading' | 'ready' | 'submitted' | 'streaming' | 'error';
  /** Why the newest message has no answer, or the chat could not be read: NoAnswerError for a task that failed. */
  error: unknown;
  /** The newest answer ends with a question; the next message answers it. */
  question: ViewQuestion | undefined;
};

/** A store of Svelte's contract. It follows the chat while it has subscribers. */
export type ChatStore = {
  readonly contextId: string;
  /** Calls `run` with the value now and after each change. Returns the function that ends it. */
  subscribe(run: (value: ChatValue) => void): () => void;
  /** The value now. */
  get(): ChatValue;
  /** Resolves when the server has the message. An error is in the value. */
  send(message: string | Part[]): Promise<void>;
  /** Cancels the newest task, if it has not ended. */
  stop(): Promise<void>;
};

/** Which chat a store shows, and what is known of it. */
export type ChatStoreOptions = {
  /** The chat. With an id of an earlier one its newest tasks are read, and a running one is followed. */
  contextId?: string | undefined;
  /** Name of an agent. Default: the server chooses. */
  agent?: string | undefined;
  /** The tasks of the chat, as `client.list({ contextId, includeArtifacts: true })` returns them on the server that renders the page. */
  initial?: readonly Task[] | undefined;
};

/** Tasks of a chat that are read, newest first. */
const CHAT_TASKS_MAX = 20;

type ChatClient = Pick<TaskClient, 'subscribe' | 'get' | 'list' | 'send' | 'cancel'>;

/** A message of the user. */
type Question = {
  message: ChatMessage;
  /** The turn that it begins. A message that is sent while the task works is added to the turn. */
  turn: number;
  /** Key of the agent's question that it answers, if this store has sent it. */
  answers: string | undefined;
};

/** One task of the chat, or a message whose task is not known yet. */
type ChatTask = {
  taskId: string | undefined;
  questions: Question[];
  store: TaskStore | undefined;
  value: TaskStoreValue | undefined;
  /** The value is the task of a list, which has the texts of all turns in one. */
  isListed: boolean;
  /** The stream has the status of the list. */
  hasListedStatus: boolean;
  /** Questions of the agent, by turn. */
  asked: Map<number, string>;
  leave: (() => void) | undefined;
};

/** A chat is a context of A2A: each message begins a task, or answers the question of the newest one. */
export function chatStore(client: ChatClient, options: ChatStoreOptions = {}): ChatStore {
  return new Chat(client, options);
}

class Chat implements ChatStore {
  readonly contextId: string;
  readonly #client: ChatClient;
  readonly #agent: string | undefined;
  readonly #runs = new Set<(value: ChatValue) => void>();
  #tasks: ChatTask[] = [];
  #loading: 'due' | 'begun' | 'done';
  /** Number of messages on their way. */
  #sending = 0;
  #sent: Promise<void> = Promise.resolve();
  /** Why the newest message was not sent. */
  #error: unknown;
  /** Why the tasks of the chat could not be read. */
  #listError: unknown;
  #value: ChatValue;

  constructor(client: ChatClient, { contextId, agent, initial }: ChatStoreOptions) {
    this.#client = client;
    this.#agent = agent;
    this.contextId = contextId ?? randomId();
    this.#loading = contextId === undefined || initial !== undefined ? 'done' : 'due';
    if (initial !== undefined) this.#load(initial);
    this.#value = this.#valueNow();
  }

  // Arrow functions, because components pass members of a store on.
  readonly subscribe = (run: (value: ChatValue) => void): (() => void) => {
    const listener = (next: ChatValue) => run(next);
    this.#runs.add(listener);
    run(this.#value);
    void this.#open();
    return () => {
      this.#runs.delete(listener);
      setTimeout(() => this.#close());
    };
  };

  readonly get = (): ChatValue => this.#value;

  readonly send = (message: string | Part[]): Promise<void> => {
    this.#sent = this.#submit(message);
    return this.#sent;
  };

  readonly stop = async (): Promise<void> => {
    // The id of the task comes with the response.
    await this.#sent;
    const { taskId, value } = this.#tasks.at(-1) ?? {};
    if (taskId !== undefined && !isTerminal(value?.view.state ?? 'TASK_STATE_SUBMITTED')) await this.#client.cancel(taskId);
  };

  #load(page: readonly Task[]): void {
    // A message that was sent in the meantime may have its task in the list.
    const known = new Set(this.#tasks.flatMap(({ questions }) => questions.map(({ message }) => message.id)));
    const isOther = ({ history = [] }: Task) => !history.some(({ messageId }) => known.has(messageId));
    const earlier = page.filter(isOther).toReversed();
    this.#tasks = [...earlier.map(task => chatTaskOf(this.#client, task)), ...this.#tasks];
  }

  #changed(): void {
    this.#value = this.#valueNow();
    for (const run of [...this.#runs]) run(this.#value);
  }

  #follow(task: ChatTask): void {
    if (task.leave !== undefined || task.store === undefined || this.#runs.size === 0) return;
    task.leave = task.store.subscribe(next => {
      if (next.view.question !== undefined) task.asked.set(next.view.turn, next.view.question.text);
      // A task of several turns is read from its beginning. Until its stream is as new as the list, the task of the list is shown.
      if (task.isListed && isBehind(task, next)) return;
      if (task.isListed) leaveList(task, next.view);
      task.value = next;
      this.#changed();
    });
  }

  async #open(): Promise<void> {
    for (const task of this.#tasks) this.#follow(task);
    if (this.#loading !== 'due' || this.#runs.size === 0) return;
    this.#loading = 'begun';
    try {
      const query = { contextId: this.contextId, pageSize: CHAT_TASKS_MAX, includeArtifacts: true };
      this.#load((await this.#client.list(query)).tasks);
      [this.#loading, this.#listError] = ['done', undefined];
      for (const task of this.#tasks) this.#follow(task);
    } catch (thrown) {
      [this.#loading, this.#listError] = ['due', thrown];
    }
    this.#changed();
  }

  #close(): void {
    if (this.#runs.size > 0) return;
    for (const task of this.#tasks) {
      task.leave?.();
      task.leave = undefined;
    }
  }

  async #submit(content: string | Part[]): Promise<void> {
    const parts = typeof content === 'string' ? [{ text: content }] : content;
    const newest = this.#tasks.at(-1);
    const waiting = newest?.value?.view.question === undefined ? undefined : newest;
    const task = waiting ?? newChatTask();
    const message = userMessageOf({ messageId: randomId(), parts });
    const question = { message, turn: turnOf(task) + 1, answers: waiting && keyOf(waiting.value!.view) };
    task.questions = [...task.questions, question];
    if (waiting === undefined) this.#tasks = [...this.#tasks, task];
    this.#sending += 1;
    this.#error = undefined;
    this.#changed();
    void this.#open();
    try {
      await this.#request(task, { messageId: message.id, parts });
      this.#follow(task);
    } catch (thrown) {
      // The status is that of the newest message.
      if (this.#tasks.at(-1)?.questions.at(-1)?.message.id === message.id) this.#error = thrown;
      const failed = { ...question, message: { ...message, error: thrown }, answers: undefined };
      task.questions = task.questions.map(one => (one.message.id === message.id ? failed : one));
    }
    this.#sending -= 1;
    this.#changed();
  }

  async #request(task: ChatTask, { messageId, parts }: { messageId: string; parts: Part[] }): Promise<void> {
    const { taskId } = task;
    const outgoing = { messageId, contextId: this.contextId, parts, ...(taskId !== undefined && { taskId }) };
    const metadata = this.#agent !== undefined && { metadata: { agent: this.#agent } };
    const result = await this.#client.send(outgoing, { blocking: false, ...metadata });
    if ('message' in result) {
      task.value = { view: viewOf(result), status: 'ended', error: undefined };
      return;
    }
    task.taskId = result.task.id;
    task.store ??= taskStore(this.#client, result.task.id);
    // A stream that broke for good is opened again.
    if (task.value?.status !== 'failed') return;
    task.leave?.();
    task.leave = undefined;
  }

  #valueNow(): ChatValue {
    const newest = this.#tasks.at(-1);
    const view = newest?.value?.view;
    // The answer is on its way while the task still shows its question.
    const isAnswered = view?.question !== undefined && newest!.questions.some(({ answers }) => answers === keyOf(view));
    const failure = view !== undefined && hasFailed(view) ? new NoAnswerError(view) : undefined;
    const reason = newest === undefined ? this.#listError : (this.#error ?? newest.value?.error ?? failure);
    return {
      messages: this.#tasks.flatMap(messagesOf),
      status: this.#statusNow(reason, isAnswered),
      error: reason,
      question: isAnswered ? undefined : view?.question,
    };
  }

  #statusNow(reason: unknown, isAnswered: boolean): ChatValue['status'] {
    if (this.#sending > 0) return 'submitted';
    if (reason !== undefined) return 'error';
    if (isAnswered) return 'submitted';
    const newest = this.#tasks.at(-1);
    if (newest === undefined) return this.#loading === 'done' ? 'ready' : 'loading';
    const { view } = newest.value ?? {};
    if (view !== undefined && !isInProgress(view.state)) return 'ready';
    return view !== undefined && hasBegun(view) ? 'streaming' : 'submitted';
  }
}

function newChatTask(): ChatTask {
  const none = { taskId: undefined, store: undefined, value: undefined, leave: undefined };
  return { ...none, questions: [], isListed: false, hasListedStatus: true, asked: new Map() };
}

function chatTaskOf(client: ChatClient, task: Task): ChatTask {
  const made: ChatTask = { ...newChatTask(), taskId: task.id, questions: questionsOf(task.history ?? []) };
  if (made.questions.length <= 1) {
    made.store = taskStore(client, task.id, { initial: { event: { task }, cursor: undefined } });
    made.value = made.store.get();
    return made;
  }
  // The turns of a task are known only from its stream.
  const { timestamp } = task.status;
  made.store = taskStore(timestamp === undefined ? client : noticing(client, timestamp, made), task.id);
  made.value = { view: viewOf({ task }), status: 'open', error: undefined };
  made.isListed = true;
  made.hasListedStatus = timestamp === undefined;
  return made;
}

/** Notices in the streams of a task that they have its status of this time, or a later one. */
function noticing(client: ChatClient, timestamp: string, task: ChatTask): Pick<ChatClient, 'subscribe' | 'get'> {
  const listedMs = Date.parse(timestamp);
  return {
    get: (...call) => client.get(...call),
    async *subscribe(...call) {
      for await (const item of client.subscribe(...call)) {
        if (Date.parse(statusTimeOf(item) ?? '') >= listedMs) task.hasListedStatus = true;
        yield item;
      }
    },
  };
}

/** Whether the stream lacks a part of what the list has. After a gap it has the current task. */
function isBehind({ hasListedStatus, value }: ChatTask, { view, status }: TaskStoreValue): boolean {
  if ((status !== 'loading' && status !== 'open') || view.gaps > 0) return false;
  return !hasListedStatus || lengthOf(view) < lengthOf(value!.view);
}

function lengthOf({ texts }: ClientView): number {
  return texts.reduce((sum, { channel, text }) => sum + (channel === 'answer' ? text.length : 0), 0);
}

function leaveList(task: ChatTask, { turn }: ClientView): void {
  task.isListed = false;
  // As many turns as messages: each began one, also after a question without a message.
  if (turn >= task.questions.length) task.questions = task.questions.map((question, index) => ({ ...question, turn: index + 1 }));
}

/** The user's messages. One that directly follows another was sent while the task worked, because a question would be between them. */
function questionsOf(history: readonly Message[]): Question[] {
  let turn = 0;
  return history.flatMap((message, index) => {
    if (message.role !== 'ROLE_USER') return [];
    if (history[index - 1]?.role !== 'ROLE_USER') turn += 1;
    return [{ message: userMessageOf(message), turn, answers: undefined }];
  });
}

function userMessageOf({ messageId, parts }: Pick<Message, 'messageId' | 'parts'>): ChatMessage {
  return { id: messageId, role: 'user', text: textOf(parts), question: undefined, view: undefined, error: undefined };
}

/** The turn that a task shows; 0 before its first. */
function turnOf({ isListed, questions, value }: ChatTask): number {
  return isListed ? (questions.at(-1)?.turn ?? 0) : (value?.view.turn ?? 0);
}

/** Key of a question of the agent: its message, which a list and a stream have, or its turn. */
function keyOf({ question, turn }: ClientView): string {
  return question?.message?.messageId ?? `${turn}`;
}

function viewOf(event: { task: Task } | { message: Message }): ClientView {
  const fold = new ViewFold();
  fold.add({ event });
  return fold.view;
}

function messagesOf({ questions, value, isListed, asked }: ChatTask): ChatMessage[] {
  const messages = questions.map(({ message }) => message);
  const view = value?.view;
  if (view === undefined) return messages;
  if (isListed) return [...messages, answerOf(messages.at(-1), view, view.turn, asked)];
  const turns = Math.max(view.turn, ...questions.map(({ turn }) => turn));
  return Array.from({ length: turns }, (_, index) => index + 1).flatMap(turn => {
    const ofTurn = questions.filter(question => question.turn === turn).map(({ message }) => message);
    return turn > view.turn ? ofTurn : [...ofTurn, answerOf(ofTurn[0], view, turn, asked)];
  });
}

function answerOf(
  question: ChatMessage | undefined,
  view: ClientView,
  turn: number,
  asked: ReadonlyMap<number, string>,
): ChatMessage {
  const texts = view.texts.filter(text => text.channel === 'answer' && text.turn === turn);
  const text = turn === view.turn ? view.answer : texts.map(one => one.text).join('');
  const ownQuestion = turn === view.turn ? view.question?.text : asked.get(turn);
  return {
    id: `${question?.id ?? view.taskId}-answer-${turn}`,
    role: 'agent',
    text,
    question: ownQuestion,
    view,
    error: undefined,
  };
}

function hasBegun({ answer, plan, tools, turn }: ClientView): boolean {
  return answer !== '' || plan !== '' || tools.some(tool => tool.turn === turn);
}

function hasFailed({ state }: ClientView): boolean {
  return state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED';
}
