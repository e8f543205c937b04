import { A2AError, isInProgress, isTerminal, type Message, type Part, type Task, textOf } from '@hopline/a2a/client';
import { type ClientView, statusTimeOf, ViewFold, type ViewQuestion } from '@hopline/task-view';
import { notify } from './notify.ts';
import { randomId } from './outgoing.ts';
import { onReturn } from './page-events.ts';
import { isTransient, Reopening } from './reopening.ts';
import type { TaskClient } from './task-client.ts';
import { followTask, type TaskStore, type TaskStoreValue } from './task-store.ts';
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
  /**
   * Why this user message was not sent; why the task of this agent message cannot be read. The next `send` repeats an unsent message only if it has the
   * same content.
   */
  error: unknown;
};

/** A chat as a page shows it. Values are immutable. */
export type ChatValue = {
  messages: readonly ChatMessage[];
  /**
   * `submitted`: nothing of the answer has arrived. `ready`: the chat waits for the user. `reconnecting`: the server cannot be reached, and the store
   * tries again by itself.
   */
  status: 'loading' | 'ready' | 'submitted' | 'streaming' | 'reconnecting' | 'error';
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
  /** Cancels the tasks of the chat that run, and the newest one if it has not ended. Also resolves if they have ended in the meantime. */
  stop(): Promise<void>;
  /** Reads at once what could not be read: the list of the chat, and the streams of its tasks. */
  retry(): void;
};

/** Which chat a store shows, and what is known of it. */
export type ChatStoreOptions = {
  /** The chat. With an id of an earlier one its newest tasks are read, and a running one is followed. */
  contextId?: string | undefined;
  /** Name of an agent. Default: the server chooses. */
  agent?: string | undefined;
  /** The tasks of the chat, as `chatTasks(client, contextId)` returns them on the server that renders the page. */
  initial?: readonly Task[] | undefined;
};

/** Tasks of a chat that are read, newest first. */
const CHAT_TASKS_MAX = 20;
/** Pages in which they are read. Large tasks make pages short. */
const CHAT_PAGES_MAX = 40;

/**
 * The newest 20 tasks of a chat, newest status first, with their artifacts. Tasks of a page that is too large have none: a store reads them from
 * their streams.
 */
export async function chatTasks(client: Pick<TaskClient, 'list'>, contextId: string): Promise<Task[]> {
  // A task whose status changes meanwhile may be on two pages.
  const tasks = new Map<string, Task>();
  let pageToken: string | undefined;
  for (let pages = 0; pages < CHAT_PAGES_MAX && tasks.size < CHAT_TASKS_MAX; pages += 1) {
    const query = { contextId, pageSize: CHAT_TASKS_MAX - tasks.size, pageToken };
    const page = await client.list({ ...query, includeArtifacts: true }).catch((thrown: unknown) => {
      if (!(thrown instanceof A2AError) || thrown.code !== 'INVALID_AGENT_RESPONSE') throw thrown;
      return client.list(query);
    });
    for (const task of page.tasks) tasks.set(task.id, tasks.get(task.id) ?? task);
    pageToken = page.nextPageToken;
    if (pageToken === undefined) break;
  }
  return [...tasks.values()];
}

type ChatClient = Pick<TaskClient, 'subscribe' | 'get' | 'list' | 'send' | 'cancel'>;

/** A message of the user. */
type Question = {
  message: ChatMessage;
  /** The parts as JSON, if this store has sent them. */
  content?: string;
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
  /** The newest turn whose message the list was read for. */
  turnRead: number;
  leave: (() => void) | undefined;
  /** The messages as they were last built, and their sources: a page renders only messages that are new objects. */
  shown: (Pick<ChatTask, 'value' | 'questions' | 'isListed'> & { messages: readonly ChatMessage[] }) | undefined;
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
  /** In the order in which they were created. */
  #tasks: ChatTask[] = [];
  #isRead: boolean;
  #reading: Promise<void> | undefined;
  #isRefreshing = false;
  readonly #reopening = new Reopening(() => void this.#open());
  #leavePage: (() => void) | undefined;
  /** Number of messages on their way. */
  #sending = 0;
  #sent: Promise<unknown> = Promise.resolve();
  /** Id of the newest message that this store was given. */
  #newestId: string | undefined;
  /** Why the newest message was not sent. */
  #error: unknown;
  /** Why the tasks of the chat could not be read. */
  #listError: unknown;
  #stopping: Promise<void> | undefined;
  #value: ChatValue;

  constructor(client: ChatClient, { contextId, agent, initial }: ChatStoreOptions) {
    this.#client = client;
    this.#agent = agent;
    this.contextId = contextId ?? randomId();
    if (initial !== undefined) this.#load(initial);
    this.#isRead = contextId === undefined || initial !== undefined;
    this.#value = this.#valueNow();
  }

  // Arrow functions, because components pass members of a store on.
  readonly subscribe = (run: (value: ChatValue) => void): (() => void) => {
    const listener = (next: ChatValue) => run(next);
    this.#runs.add(listener);
    this.#leavePage ??= onReturn(() => void (this.#isRead ? this.#refresh() : this.#reopening.returned()));
    notify([listener], this.#value);
    void this.#open();
    return () => {
      this.#runs.delete(listener);
      setTimeout(() => this.#close());
    };
  };

  readonly get = (): ChatValue => this.#value;

  readonly send = (message: string | Part[]): Promise<void> => {
    const sent = this.#submit(message);
    this.#sent = Promise.all([this.#sent, sent]);
    return sent;
  };

  readonly stop = (): Promise<void> => {
    this.#stopping ??= this.#stop().finally(() => {
      this.#stopping = undefined;
    });
    return this.#stopping;
  };

  readonly retry = (): void => {
    for (const { store } of this.#tasks) store?.retry();
    void this.#open();
  };

  async #stop(): Promise<void> {
    if (!this.#isRead) await this.#read();
    const canceled = new Map<string, Promise<void>>();
    const cancelAll = () => {
      const newest = this.#newest();
      for (const task of this.#tasks) {
        const { taskId } = task;
        const isDue = isRunning(task) || (task === newest && !isTerminal(stateOf(task)));
        if (taskId !== undefined && isDue && !canceled.has(taskId)) canceled.set(taskId, this.#cancel(taskId));
      }
      return Promise.all(canceled.values());
    };
    await cancelAll();
    // The id of a task comes with the response to its message.
    await this.#sent;
    await cancelAll();
    if (canceled.size === 0 && this.#listError !== undefined) throw this.#listError;
  }

  async #cancel(taskId: string): Promise<void> {
    try {
      await this.#client.cancel(taskId);
    } catch (thrown) {
      // The task has ended in the meantime.
      if (!(thrown instanceof A2AError) || thrown.code !== 'TASK_NOT_CANCELABLE') throw thrown;
    }
  }

  #load(page: readonly Task[]): void {
    for (const task of page) this.#received(task);
    const known = new Map(this.#tasks.map(task => [task.taskId, task]));
    // A message that is on its way may have its task in the list.
    const ids = new Set(this.#tasks.flatMap(({ questions }) => questions.map(({ message }) => message.id)));
    // Tasks of messages that were sent before the first list is read are newer than all tasks of the list.
    const sentBefore = this.#isRead ? [] : [...this.#tasks];
    const areDated = page.every(({ id }) => isDated(id));
    const inOrder = areDated ? page.toSorted((a, b) => (a.id < b.id ? -1 : 1)) : page.toReversed();
    for (const task of inOrder) {
      const { id, history = [] } = task;
      const shown = known.get(id);
      if (shown !== undefined) addMessages(shown, history);
      else if (!history.some(({ messageId }) => ids.has(messageId))) {
        const later = (other: ChatTask) =>
          isOnItsWay(other) ||
          sentBefore.includes(other) ||
          (isDated(id) && other.taskId !== undefined && isDated(other.taskId) && other.taskId > id);
        const at = this.#tasks.findIndex(later);
        const made = chatTaskOf(this.#client, task);
        known.set(id, made);
        this.#tasks.splice(at < 0 ? this.#tasks.length : at, 0, made);
      }
    }
  }

  /** A message whose response was lost counts as not sent, until a list has it. */
  #received({ id, history = [] }: Task): void {
    const ids = new Set(history.map(({ messageId }) => messageId));
    for (const task of this.#tasks) {
      if (!task.questions.some(({ message }) => message.error !== undefined && ids.has(message.id))) continue;
      task.questions = task.questions.map(question =>
        ids.has(question.message.id) ? { ...question, message: { ...question.message, error: undefined } } : question,
      );
      if (this.#newestId !== undefined && ids.has(this.#newestId)) this.#error = undefined;
      task.taskId ??= id;
      task.store ??= storeOf(this.#client, id, task);
    }
  }

  #changed(): void {
    this.#value = this.#valueNow();
    notify(this.#runs, this.#value);
  }

  #follow(task: ChatTask): void {
    if (task.leave !== undefined || task.store === undefined || this.#runs.size === 0) return;
    task.leave = task.store.subscribe(next => {
      // A task of several turns is read from its beginning. Until its stream is as new as the list, the task of the list is shown.
      if (task.isListed && isBehind(task, next)) {
        if (next.error === task.value!.error) return;
        task.value = { ...task.value!, status: next.error === undefined ? 'open' : next.status, error: next.error };
      } else {
        if (task.isListed) leaveList(task, next.view);
        task.value = next;
        this.#readMessages(task, next.view);
      }
      this.#changed();
    });
  }

  /** Another page, or another program, has answered the question of a task: the list has its message. */
  #readMessages(task: ChatTask, { turn, gaps }: ClientView): void {
    if (gaps > 0 || turn <= Math.max(task.turnRead, ...task.questions.map(question => question.turn))) return;
    task.turnRead = turn;
    void this.#refresh();
  }

  async #open(): Promise<void> {
    for (const task of this.#tasks) this.#follow(task);
    if (!this.#isRead && this.#runs.size > 0) await this.#read();
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readList().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readList(): Promise<void> {
    this.#reopening.stop();
    try {
      this.#load(await chatTasks(this.#client, this.contextId));
      [this.#isRead, this.#listError] = [true, undefined];
      this.#reopening.succeeded();
      for (const task of this.#tasks) this.#follow(task);
    } catch (thrown) {
      this.#listError = thrown;
      if (isTransient(thrown) && this.#runs.size > 0) this.#reopening.failed(thrown);
    }
    this.#changed();
  }

  /** Reads the tasks and messages that others have added to the chat. */
  async #refresh(): Promise<void> {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      this.#load((await this.#client.list({ contextId: this.contextId, pageSize: CHAT_TASKS_MAX })).tasks);
      for (const task of this.#tasks) this.#follow(task);
      this.#changed();
    } catch {
      // The shown messages stay as they are. The next event of this kind triggers another read.
    } finally {
      this.#isRefreshing = false;
    }
  }

  #close(): void {
    if (this.#runs.size > 0) return;
    this.#reopening.stop();
    this.#leavePage?.();
    this.#leavePage = undefined;
    for (const task of this.#tasks) {
      task.leave?.();
      task.leave = undefined;
    }
  }

  /** A message that was not sent has no task. */
  #newest(): ChatTask | undefined {
    return this.#tasks.findLast(({ taskId, value }) => taskId !== undefined || value !== undefined);
  }

  async #submit(outgoing: string | Part[]): Promise<void> {
    const parts = typeof outgoing === 'string' ? [{ text: outgoing }] : outgoing;
    const newest = this.#newest();
    const waiting = newest?.value?.view.question === undefined ? undefined : newest;
    const content = JSON.stringify(parts);
    const unsent = this.#unsentLike(content, waiting);
    const task = waiting ?? unsent?.task ?? newChatTask();
    const message = userMessageOf({ messageId: unsent?.messageId ?? randomId(), parts });
    const question = { message, content, turn: turnOf(task) + 1, answers: waiting && keyOf(waiting.value!.view) };
    task.questions = [...task.questions.filter(one => one.message.id !== message.id), question];
    if (!this.#tasks.includes(task)) this.#tasks = [...this.#tasks, task];
    this.#sending += 1;
    this.#newestId = message.id;
    this.#error = undefined;
    this.#changed();
    void this.#open();
    try {
      await this.#request(task, { messageId: message.id, parts });
      this.#follow(task);
    } catch (thrown) {
      // The status is that of the newest message.
      if (this.#newestId === message.id) this.#error = thrown;
      const failed = { ...question, message: { ...message, error: thrown }, answers: undefined };
      task.questions = task.questions.map(one => (one.message.id === message.id ? failed : one));
    }
    this.#sending -= 1;
    this.#changed();
  }

  /**
   * The newest message, if it has this content, would go to the same task and was not sent as far as this store knows. The server may have received it: with
   * the same id it begins no second task.
   */
  #unsentLike(content: string, waiting: ChatTask | undefined): { task: ChatTask; messageId: string } | undefined {
    for (const task of this.#tasks) {
      const isSame = ({ message, content: sent }: Question) =>
        message.id === this.#newestId && message.error !== undefined && sent === content;
      if (!task.questions.some(isSame)) continue;
      const isItsTask = waiting === undefined ? task.taskId === undefined : task === waiting;
      return isItsTask ? { task, messageId: this.#newestId! } : undefined;
    }
    return undefined;
  }

  async #request(task: ChatTask, { messageId, parts }: { messageId: string; parts: Part[] }): Promise<void> {
    const { taskId } = task;
    const outgoing = { messageId, contextId: this.contextId, parts, ...(taskId !== undefined && { taskId }) };
    const result = await this.#client.send(outgoing, { blocking: false, agent: this.#agent });
    if ('message' in result) {
      task.value = { view: viewOf(result), status: 'ended', error: undefined };
      return;
    }
    task.taskId = result.task.id;
    task.store ??= storeOf(this.#client, result.task.id, task);
    // A stream that broke is opened again.
    task.store.retry();
  }

  #valueNow(): ChatValue {
    const newest = this.#newest();
    const view = newest?.value?.view;
    const failure = view !== undefined && hasFailed(view) ? new NoAnswerError(view) : undefined;
    return {
      messages: this.#tasks.flatMap(messagesOf),
      status: this.#statusNow(),
      error: this.#error ?? (newest === undefined ? this.#listError : (newest.value?.error ?? failure)),
      // The answer is on its way while the task still shows its question.
      question: newest !== undefined && isAnswered(newest) ? undefined : view?.question,
    };
  }

  #statusNow(): ChatValue['status'] {
    if (this.#sending > 0) return 'submitted';
    const newest = this.#newest();
    const unsent = this.#error === undefined ? undefined : 'error';
    if (newest === undefined) {
      if (unsent !== undefined || this.#listError === undefined) return unsent ?? (this.#isRead ? 'ready' : 'loading');
      return isTransient(this.#listError) ? 'reconnecting' : 'error';
    }
    const { status, view } = newest.value ?? {};
    if (status === 'failed') return 'error';
    if (status === 'reconnecting') return 'reconnecting';
    if (view?.question !== undefined && !isAnswered(newest)) return unsent ?? 'ready';
    const running = this.#tasks.findLast(isRunning);
    if (running === undefined) return unsent ?? (view !== undefined && hasFailed(view) ? 'error' : 'ready');
    return running.value !== undefined && hasBegun(running.value.view) && !isAnswered(running) ? 'streaming' : 'submitted';
  }
}

function newChatTask(): ChatTask {
  const none = { taskId: undefined, store: undefined, value: undefined, leave: undefined, shown: undefined };
  return { ...none, questions: [], isListed: false, hasListedStatus: true, asked: new Map(), turnRead: 1 };
}

function chatTaskOf(client: ChatClient, task: Task): ChatTask {
  const made: ChatTask = { ...newChatTask(), taskId: task.id, questions: questionsOf(task.history ?? []) };
  if (made.questions.length <= 1 && task.artifacts !== undefined) {
    made.store = storeOf(client, task.id, made, { task });
    made.value = made.store.get();
    return made;
  }
  // The turns of a task, and everything that a list does not show, are known only from its stream.
  const { timestamp } = task.status;
  made.store = storeOf(client, task.id, made, { timestamp });
  made.value = { view: viewOf({ task }), status: 'open', error: undefined };
  made.isListed = true;
  made.hasListedStatus = timestamp === undefined;
  return made;
}

/** The store of a task, which notes its questions, and that its stream has the status of this time, or a later one. */
function storeOf(
  client: ChatClient,
  taskId: string,
  of: ChatTask,
  { task, timestamp = '' }: { task?: Task; timestamp?: string | undefined } = {},
): TaskStore {
  const listedMs = Date.parse(timestamp);
  const initial = task && { event: { task }, cursor: undefined };
  return followTask(client, taskId, { initial }, (item, changes, fold) => {
    if (Date.parse(statusTimeOf(item) ?? '') >= listedMs) of.hasListedStatus = true;
    for (const change of changes) if (change.kind === 'question') of.asked.set(fold.view.turn, change.question.text);
  });
}

/** Ids of Hopline are UUIDs of version 7, which begin with the time of their creation. */
function isDated(taskId: string): boolean {
  return /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-/.test(taskId);
}

/** A message without a response. */
function isOnItsWay({ taskId, value, questions }: ChatTask): boolean {
  return taskId === undefined && value === undefined && questions.every(({ message }) => message.error === undefined);
}

function stateOf({ value }: ChatTask): ClientView['state'] {
  return value?.view.state ?? 'TASK_STATE_SUBMITTED';
}

/** Whether the agent works on the task. A task whose stream is refused counts as not running. */
function isRunning(task: ChatTask): boolean {
  if (task.taskId === undefined || task.value?.status === 'failed') return false;
  return isInProgress(stateOf(task)) || isAnswered(task);
}

function isAnswered({ value, questions }: ChatTask): boolean {
  const view = value?.view;
  return view?.question !== undefined && questions.some(({ answers }) => answers === keyOf(view));
}

/** Adds the messages that others have sent to the task. */
function addMessages(task: ChatTask, history: readonly Message[]): void {
  const known = new Set(task.questions.map(({ message }) => message.id));
  const listed = questionsOf(history);
  const [first] = listed;
  // A list may have only the newest messages.
  const isWhole = first?.message.id === task.questions[0]?.message.id;
  const added = listed
    .filter(({ message }) => !known.has(message.id))
    .map(one => (isWhole ? one : { ...one, turn: turnOf(task) }));
  task.questions = [...task.questions, ...added].toSorted((a, b) => a.turn - b.turn);
}

/** Whether the stream still lacks a part that the list has. After a gap it has the current task. */
function isBehind({ hasListedStatus, value }: ChatTask, { view, status }: TaskStoreValue): boolean {
  if (status === 'ended' || view.gaps > 0) return false;
  return !hasListedStatus || lengthOf(view) < lengthOf(value!.view);
}

function lengthOf({ texts }: ClientView): number {
  return texts.reduce((sum, { channel, text }) => sum + (channel === 'answer' ? text.length : 0), 0);
}

function leaveList(task: ChatTask, { turn }: ClientView): void {
  task.isListed = false;
  // There are as many turns as messages, because each message began one, even after a question without a message.
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

/** The same objects as before while the task has not changed. */
function messagesOf(task: ChatTask): readonly ChatMessage[] {
  const { questions, value, isListed, shown } = task;
  if (shown !== undefined && shown.value === value && shown.questions === questions && shown.isListed === isListed)
    return shown.messages;
  const messages = newMessagesOf(task);
  task.shown = { questions, value, isListed, messages };
  return messages;
}

function newMessagesOf({ questions, value, isListed, asked }: ChatTask): ChatMessage[] {
  const messages = questions.map(({ message }) => message);
  if (value === undefined) return messages;
  const { view } = value;
  const shown = { value, asked };
  if (isListed) return [...messages, answerOf(messages.at(-1), view.turn, shown)];
  const turns = Math.max(view.turn, ...questions.map(({ turn }) => turn));
  return Array.from({ length: turns }, (_, index) => index + 1).flatMap(turn => {
    const ofTurn = questions.filter(question => question.turn === turn).map(({ message }) => message);
    return turn > view.turn ? ofTurn : [...ofTurn, answerOf(ofTurn[0], turn, shown)];
  });
}

type ShownTask = { value: TaskStoreValue; asked: ReadonlyMap<number, string> };

function answerOf(question: ChatMessage | undefined, turn: number, { value, asked }: ShownTask): ChatMessage {
  const { view, status, error } = value;
  const isNewest = turn === view.turn;
  const texts = view.texts.filter(text => text.channel === 'answer' && text.turn === turn);
  return {
    id: `${question?.id ?? view.taskId}-answer-${turn}`,
    role: 'agent',
    text: isNewest ? view.answer : texts.map(one => one.text).join(''),
    question: (isNewest ? view.question?.text : undefined) ?? asked.get(turn),
    view,
    error: isNewest && status === 'failed' ? error : undefined,
  };
}

function hasBegun({ answer, plan, tools, turn }: ClientView): boolean {
  return answer !== '' || plan !== '' || tools.some(tool => tool.turn === turn);
}

function hasFailed({ state }: ClientView): boolean {
  return state === 'TASK_STATE_FAILED' || state === 'TASK_STATE_REJECTED';
}
