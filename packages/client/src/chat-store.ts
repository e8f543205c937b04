import { isInProgress, isTerminal, type Message, type Part, type Task, textOf } from '@hopline/a2a/client';
import { type ClientView, ViewFold, type ViewQuestion } from '@hopline/task-view';
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
};

/** A chat as a page shows it. Values are immutable. */
export type ChatValue = {
  messages: readonly ChatMessage[];
  /** `submitted`: nothing of the answer has arrived. `ready`: the chat waits for the user. */
  status: 'loading' | 'ready' | 'submitted' | 'streaming' | 'error';
  /** Why the newest message has no answer: NoAnswerError for a task that failed. */
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

/** One task of the chat, or a message whose task is not known yet. */
type ChatTask = {
  taskId: string | undefined;
  questions: ChatMessage[];
  store: TaskStore | undefined;
  value: TaskStoreValue | undefined;
  /** The value is the task of a list, which has the texts of all turns in one. */
  isListed: boolean;
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
  #isSending = false;
  #sent: Promise<void> = Promise.resolve();
  #error: unknown;
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
    const own = (next: ChatValue) => run(next);
    this.#runs.add(own);
    run(this.#value);
    void this.#open();
    return () => {
      this.#runs.delete(own);
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
    const known = new Set(this.#tasks.flatMap(({ questions }) => questions.map(question => question.id)));
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
      // A task of several turns is read from its beginning. Until its newest turn has arrived, the task of the list is shown.
      const isBehind = next.view.turn < task.questions.length && (next.status === 'loading' || next.status === 'open');
      if (task.isListed && isBehind) return;
      [task.value, task.isListed] = [next, false];
      this.#changed();
    });
  }

  async #open(): Promise<void> {
    for (const task of this.#tasks) this.#follow(task);
    if (this.#loading !== 'due') return;
    this.#loading = 'begun';
    try {
      const query = { contextId: this.contextId, pageSize: CHAT_TASKS_MAX, includeArtifacts: true };
      this.#load((await this.#client.list(query)).tasks);
      this.#loading = 'done';
      for (const task of this.#tasks) this.#follow(task);
    } catch (thrown) {
      this.#error = thrown;
      this.#loading = 'due';
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

  async #submit(message: string | Part[]): Promise<void> {
    const parts = typeof message === 'string' ? [{ text: message }] : message;
    const newest = this.#tasks.at(-1);
    const waiting = newest?.value?.view.question === undefined ? undefined : newest;
    const question = questionOf({ messageId: randomId(), parts });
    const task = waiting ?? newChatTask();
    task.questions = [...task.questions, question];
    if (waiting === undefined) this.#tasks = [...this.#tasks, task];
    [this.#isSending, this.#error] = [true, undefined];
    this.#changed();
    try {
      await this.#request(task, { messageId: question.id, parts });
      this.#follow(task);
    } catch (thrown) {
      this.#error = thrown;
    }
    this.#isSending = false;
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
  }

  #valueNow(): ChatValue {
    const newest = this.#tasks.at(-1);
    const view = newest?.value?.view;
    // The answer is on its way while the task still shows its question.
    const isAnswered = view?.question !== undefined && !newest!.isListed && newest!.questions.length > view.turn;
    const failure = view !== undefined && hasFailed(view) ? new NoAnswerError(view) : undefined;
    const reason = this.#error ?? newest?.value?.error ?? failure;
    return {
      messages: this.#tasks.flatMap(messagesOf),
      status: this.#statusNow(reason, isAnswered),
      error: reason,
      question: isAnswered ? undefined : view?.question,
    };
  }

  #statusNow(reason: unknown, isAnswered: boolean): ChatValue['status'] {
    if (this.#isSending || isAnswered) return 'submitted';
    if (reason !== undefined) return 'error';
    if (this.#loading !== 'done') return 'loading';
    const newest = this.#tasks.at(-1);
    const view = newest?.value?.view;
    if (newest === undefined || (view !== undefined && !isInProgress(view.state))) return 'ready';
    return view !== undefined && hasBegun(view) ? 'streaming' : 'submitted';
  }
}

function newChatTask(): ChatTask {
  const none = { taskId: undefined, store: undefined, value: undefined, leave: undefined };
  return { ...none, questions: [], isListed: false, asked: new Map() };
}

function chatTaskOf(client: ChatClient, task: Task): ChatTask {
  const questions = (task.history ?? []).filter(({ role }) => role === 'ROLE_USER').map(questionOf);
  // The turns of a task are known only from its stream.
  const initial = questions.length > 1 ? {} : { initial: { event: { task }, cursor: undefined } };
  const store = taskStore(client, task.id, initial);
  const value: TaskStoreValue = { view: viewOf({ task }), status: 'open', error: undefined };
  return { ...newChatTask(), taskId: task.id, questions, store, value, isListed: true };
}

function questionOf({ messageId, parts }: Pick<Message, 'messageId' | 'parts'>): ChatMessage {
  return { id: messageId, role: 'user', text: textOf(parts), question: undefined, view: undefined };
}

function viewOf(event: { task: Task } | { message: Message }): ClientView {
  const fold = new ViewFold();
  fold.add({ event });
  return fold.view;
}

function messagesOf({ questions, value, isListed, asked }: ChatTask): ChatMessage[] {
  const view = value?.view;
  if (view === undefined) return questions;
  if (isListed) return [...questions, answerOf(questions.at(-1), view, view.turn, asked)];
  return Array.from({ length: Math.max(questions.length, view.turn) }, (_, index) => index + 1).flatMap(turn => {
    const question = questions[turn - 1];
    const answers = turn > view.turn ? [] : [answerOf(question, view, turn, asked)];
    return question === undefined ? answers : [question, ...answers];
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
  return { id: `${question?.id ?? view.taskId}-answer-${turn}`, role: 'agent', text, question: ownQuestion, view };
}

function hasBegun({ answer, plan, tools, turn }: ClientView): boolean {
  return answer !== '' || plan !== '' || tools.some(tool => tool.turn === turn);
}

function hasFailed({ state }: ClientView): boolean {
  return state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED';
}
