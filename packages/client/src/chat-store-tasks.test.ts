import assert from 'node:assert/strict';
import { test } from 'node:test';
import { A2AError, type Message, type StreamResponse, type Task, type TaskState } from '@hopline/a2a';
import { until } from '../../../test/kit/until.ts';
import type { TaskPage } from './calls.ts';
import { type ChatStore, type ChatStoreOptions, chatStore, chatTasks } from './chat-store.ts';
import { openPage } from './page.test-kit.ts';
import type { ListOptions, SubscribeOptions, TaskClient } from './task-client.ts';

/** Ids as Hopline makes them, in the order of the numbers. */
const idOf = (n: number) => `0198c0de-${String(n).padStart(4, '0')}-7000-8000-000000000000`;
const AT = (second: number) => new Date(second * 1000).toISOString();
const user = (messageId: string, text: string): Message => ({ messageId, role: 'ROLE_USER', parts: [{ text }] });
const agent = (messageId: string, text: string): Message => ({ messageId, role: 'ROLE_AGENT', parts: [{ text }] });
const refused = async (): Promise<never> => {
  throw new A2AError('REQUEST_TOO_LARGE');
};

/** A task of the server: its messages and its events. */
class ServedTask {
  readonly id: string;
  readonly history: Message[];
  readonly events: StreamResponse[] = [];
  #changed = Promise.withResolvers<void>();
  #second = 0;
  #state: TaskState = 'TASK_STATE_SUBMITTED';
  #text = '';

  constructor(n: number, ...history: Message[]) {
    this.id = idOf(n);
    this.history = history;
    this.events.push({ task: this.task(false) });
  }

  status(state: TaskState, second: number, message?: Message): this {
    [this.#state, this.#second] = [state, second];
    if (message !== undefined) this.history.push(message);
    const status = { state, timestamp: AT(second), ...(message && { message }) };
    return this.#push({ statusUpdate: { taskId: this.id, contextId: 'c', status } });
  }

  writes(text: string, artifactId = 'a1'): this {
    this.#text += text;
    const artifact = { artifactId, parts: [{ text }] };
    return this.#push({ artifactUpdate: { taskId: this.id, contextId: 'c', artifact, append: false, lastChunk: true } });
  }

  task(withArtifacts: boolean): Task {
    const artifacts = [{ artifactId: 'a1', parts: [{ text: this.#text }] }];
    const status = { state: this.#state, timestamp: AT(this.#second) };
    return { id: this.id, contextId: 'c', status, history: [...this.history], ...(withArtifacts && { artifacts }) };
  }

  get updatedAt(): number {
    return this.#second;
  }

  async *stream({ cursor, signal, onNotice }: SubscribeOptions) {
    let sent = cursor === undefined ? this.events.length - 1 : Number(cursor.split('.')[0]);
    onNotice?.({ kind: 'opened' });
    if (cursor === undefined) yield { cursor: `${sent}.1`, event: { task: this.task(true) } };
    for (;;) {
      signal?.throwIfAborted();
      const event = this.events[sent];
      if (event === undefined) await this.#changed.promise;
      else {
        sent += 1;
        yield { cursor: `${sent}.1`, event };
        if ('statusUpdate' in event && event.statusUpdate.status.state === 'TASK_STATE_COMPLETED') return;
      }
    }
  }

  #push(event: StreamResponse): this {
    this.events.push(event);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
    return this;
  }
}

/** A server of one chat. */
class ChatServer {
  readonly tasks: ServedTask[] = [];
  readonly requests: string[] = [];
  readonly lists: ListOptions[] = [];
  /** Tasks of a page with artifacts, which cannot be read if it has one of `tooLarge`. */
  pageSize = 20;
  tooLarge: string[] = [];
  /** Each call listed here is served before the server's own. */
  fail: { list?: () => Promise<never>; send?: () => Promise<never>; subscribe?: () => Promise<never> } = {};
  onCancel: (task: ServedTask) => Promise<unknown> = async task => task.status('TASK_STATE_CANCELED', 900);

  add(...history: Message[]): ServedTask {
    const task = new ServedTask(this.tasks.length + 1, ...history);
    this.tasks.push(task);
    return task;
  }

  open(options: ChatStoreOptions = { contextId: 'c' }): ChatStore {
    const chat = chatStore(this.client, options);
    chat.subscribe(() => {});
    return chat;
  }

  get client(): TaskClient {
    const find = (id: string) => this.tasks.find(task => task.id === id)!;
    const { fail, requests } = this;
    return {
      list: (options: ListOptions) => fail.list?.() ?? this.#list(options),
      get: async (id: string) => find(id).task(true),
      send: async ({ taskId, messageId, parts }: Message) => {
        await fail.send?.();
        const known = this.tasks.find(({ history }) => history.some(one => one.messageId === messageId));
        if (known !== undefined) return { task: known.task(false) };
        const message: Message = { messageId, role: 'ROLE_USER', parts };
        if (taskId !== undefined) find(taskId).history.push(message);
        return { task: (taskId === undefined ? this.add(message) : find(taskId)).task(false) };
      },
      cancel: async (id: string) => {
        requests.push(`cancel ${id}`);
        await this.onCancel(find(id));
        return find(id).task(false);
      },
      async *subscribe(id: string, options: SubscribeOptions = {}) {
        requests.push(`subscribe ${id}`);
        await fail.subscribe?.();
        yield* find(id).stream(options);
      },
    } as never;
  }

  async #list(options: ListOptions): Promise<TaskPage> {
    this.lists.push(options);
    const newestFirst = this.tasks.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1));
    const from = Number(options.pageToken ?? 0);
    const { includeArtifacts = false, pageSize = 50 } = options;
    const page = newestFirst.slice(from, from + Math.min(pageSize, includeArtifacts ? this.pageSize : 20));
    if (includeArtifacts && page.some(({ id }) => this.tooLarge.includes(id)))
      throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the response is too large', retryable: false });
    const next = from + page.length;
    return {
      tasks: page.map(task => task.task(includeArtifacts)),
      ...(next < newestFirst.length && { nextPageToken: `${next}` }),
    };
  }
}

const shown = (chat: ChatStore) =>
  chat.get().messages.map(({ role, text, question }) => `${role}: ${text}${question ? `?${question}` : ''}`);
const answered = (server: ChatServer, n: number, second = n) =>
  server
    .add(user(`m${n}`, `hello ${n}`))
    .status('TASK_STATE_WORKING', second)
    .writes(`answer ${n}`)
    .status('TASK_STATE_COMPLETED', second);

test('a chat follows the pages of its list, and a task that is too large for a page is read from its stream', async () => {
  const server = new ChatServer();
  for (let n = 1; n <= 25; n += 1) answered(server, n);
  server.pageSize = 3;
  server.tooLarge = [idOf(7)];
  const chat = server.open();
  const expected = Array.from({ length: 20 }, (_, index) => [`user: hello ${index + 6}`, `agent: answer ${index + 6}`]).flat();
  await until(
    () => `${shown(chat)}` === `${expected}`,
    () => shown(chat).join(', '),
  );
  assert.equal(chat.get().status, 'ready');
  const streams = server.requests.filter(request => request.startsWith('subscribe'));
  assert.deepEqual(streams, [`subscribe ${idOf(6)}`, `subscribe ${idOf(7)}`], 'only the tasks of the page that is too large');
  const read = await chatTasks(server.client, 'c');
  assert.equal(read.length, 20);
  assert.equal(read.find(({ id }) => id === idOf(7))?.artifacts, undefined);
});

test('a task that cannot be read is a turn with an error, and the others are shown', async () => {
  const server = new ChatServer();
  answered(server, 1);
  const large = answered(server, 2);
  server.tooLarge = [large.id];
  server.fail.subscribe = async () => {
    throw new A2AError('PERMISSION_DENIED');
  };
  const chat = server.open();
  await until(() => chat.get().messages.filter(({ error }) => error !== undefined).length === 2);
  assert.deepEqual(shown(chat), ['user: hello 1', 'agent: ', 'user: hello 2', 'agent: ']);
  delete server.fail.subscribe;
  chat.retry();
  await until(() => shown(chat).at(-1) === 'agent: answer 2' && shown(chat)[1] === 'agent: answer 1');
  assert.deepEqual(
    chat.get().messages.map(({ error }) => error),
    [undefined, undefined, undefined, undefined],
  );
});

test('tasks are listed in the order of their creation, whatever the order of their ends', async () => {
  const server = new ChatServer();
  answered(server, 1, 30);
  answered(server, 2, 10);
  answered(server, 3, 20);
  const chat = server.open();
  await until(() => chat.get().status === 'ready');
  const expected = [1, 2, 3].flatMap(n => [`user: hello ${n}`, `agent: answer ${n}`]);
  assert.deepEqual(shown(chat), expected);
});

test('a message that was not sent does not displace the running task: stop cancels that task, and its question can be answered', async () => {
  const server = new ChatServer();
  const chat = server.open();
  await chat.send('paint');
  const [task] = server.tasks;
  task!.status('TASK_STATE_WORKING', 1).writes('Hm. ');
  await until(() => chat.get().status === 'streaming');
  server.fail.send = refused;
  await chat.send('too large');
  delete server.fail.send;
  assert.equal(chat.get().status, 'streaming', 'the answer still arrives');
  assert.match(String(chat.get().error), /too large/);
  task!.status('TASK_STATE_INPUT_REQUIRED', 2, agent('q1', 'which color?'));
  await until(() => chat.get().question?.text === 'which color?');
  await chat.send('blue');
  assert.equal(server.tasks.length, 1);
  assert.deepEqual(shown(chat), ['user: paint', 'agent: Hm. ?which color?', 'user: blue', 'user: too large']);
  task!.status('TASK_STATE_WORKING', 3).writes('Done.', 'a2');
  await until(() => chat.get().status === 'streaming');
  server.fail.send = refused;
  await chat.send('too large again');
  await chat.stop();
  assert.deepEqual(
    server.requests.filter(request => request.startsWith('cancel')),
    [`cancel ${task!.id}`],
  );
});

test('stop cancels every running task once, waits for the list of a page, and an end in the meantime is not an error', async () => {
  const server = new ChatServer();
  answered(server, 1);
  for (const n of [2, 3]) server.add(user(`m${n}`, `count ${n}`)).status('TASK_STATE_WORKING', n);
  server.onCancel = async task => {
    task.status('TASK_STATE_COMPLETED', 10);
    throw new A2AError('TASK_NOT_CANCELABLE');
  };
  const chat = server.open();
  assert.equal(chat.get().status, 'loading');
  await Promise.all([chat.stop(), chat.stop()]);
  const canceled = server.requests.filter(request => request.startsWith('cancel'));
  assert.deepEqual(canceled.toSorted(), [`cancel ${idOf(2)}`, `cancel ${idOf(3)}`]);
  await until(() => chat.get().status === 'ready');
  await chat.stop();
  assert.equal(server.requests.filter(request => request.startsWith('cancel')).length, 2);
});

test('a chat with two running answers is streaming until both have ended', async () => {
  const server = new ChatServer();
  const chat = server.open();
  await chat.send('one');
  server.tasks[0]!.status('TASK_STATE_WORKING', 1).writes('1');
  await until(() => chat.get().status === 'streaming');
  await chat.send('two');
  server.tasks[1]!.status('TASK_STATE_WORKING', 2).writes('2').status('TASK_STATE_COMPLETED', 3);
  await until(() => chat.get().messages.at(-1)?.view?.state === 'TASK_STATE_COMPLETED');
  assert.equal(chat.get().status, 'streaming');
  server.tasks[0]!.status('TASK_STATE_COMPLETED', 4);
  await until(() => chat.get().status === 'ready');
});

test('questions of stored events, which arrive at once, are part of the transcript', async () => {
  const server = new ChatServer();
  const task = server.add(user('m1', 'ask')).status('TASK_STATE_WORKING', 1).writes('thinking. ');
  task.status('TASK_STATE_INPUT_REQUIRED', 2, agent('q1', 'Which color?'));
  task.history.push(user('m2', 'blue'));
  task.status('TASK_STATE_WORKING', 3).writes('echo: blue', 'a2').status('TASK_STATE_COMPLETED', 4);
  const chat = server.open();
  await until(() => chat.get().status === 'ready' && chat.get().messages.length === 4);
  assert.deepEqual(shown(chat), ['user: ask', 'agent: thinking. ?Which color?', 'user: blue', 'agent: echo: blue']);
});

test('a page that opens while the server is away retries until it is back, or at once on request', async () => {
  const server = new ChatServer();
  answered(server, 1);
  server.add(user('m2', 'count')).status('TASK_STATE_WORKING', 2);
  const away = async (): Promise<never> => {
    throw new A2AError('UNAVAILABLE');
  };
  server.fail = { list: away, subscribe: away };
  const chat = server.open();
  await until(() => chat.get().status === 'reconnecting');
  assert.match(String(chat.get().error), /unavailable/i);
  delete server.fail.list;
  await until(() => chat.get().messages.length === 4);
  await until(() => chat.get().status === 'reconnecting', 'the stream of the running task');
  delete server.fail.subscribe;
  chat.retry();
  await until(() => chat.get().status === 'submitted');
  assert.equal(chat.get().error, undefined);
});

test('another page’s answer to a question appears as a message, and returning to the page shows its tasks', async t => {
  const page = openPage(t);
  const server = new ChatServer();
  const chat = server.open();
  await until(() => chat.get().status === 'ready');
  await chat.send('ask');
  const [task] = server.tasks;
  task!.status('TASK_STATE_WORKING', 1).writes('thinking. ').status('TASK_STATE_INPUT_REQUIRED', 2, agent('q1', 'Which color?'));
  await until(() => chat.get().question !== undefined);
  task!.history.push(user('other', 'blue'));
  task!.status('TASK_STATE_WORKING', 3).writes('echo: blue', 'a2').status('TASK_STATE_COMPLETED', 4);
  await until(() => chat.get().messages.length === 4);
  const answers = ['user: ask', 'agent: thinking. ?Which color?', 'user: blue', 'agent: echo: blue'];
  assert.deepEqual(shown(chat), answers);
  answered(server, 2);
  page.dispatchEvent(new Event('focus'));
  await until(() => shown(chat).at(-1) === 'agent: answer 2');
  assert.deepEqual(shown(chat), [...answers, 'user: hello 2', 'agent: answer 2']);
});

test('messages of a task that did not change stay the same objects while another answer arrives', async () => {
  const server = new ChatServer();
  answered(server, 1);
  const chat = server.open();
  await until(() => chat.get().status === 'ready');
  await chat.send('count');
  const [, task] = server.tasks;
  task!.status('TASK_STATE_WORKING', 2).writes('one');
  await until(() => chat.get().status === 'streaming');
  const before = chat.get().messages;
  task!.writes('two', 'a2');
  await until(() => chat.get().messages.at(-1)?.text === 'onetwo');
  const after = chat.get().messages;
  assert.deepEqual(
    after.map((message, index) => message === before[index]),
    [true, true, true, false],
  );
});

test('the same content after a lost response is the same message; other content, and the same after an answer, is a new one', async () => {
  const server = new ChatServer();
  const chat = server.open();
  const lost = async (): Promise<never> => {
    throw new A2AError('UNAVAILABLE');
  };
  const idOfLast = () => chat.get().messages.findLast(({ role }) => role === 'user')!.id;
  server.fail.send = lost;
  await chat.send('count');
  const id = idOfLast();
  server
    .add(user(id, 'count'))
    .status('TASK_STATE_WORKING', 1)
    .writes('one')
    .status('TASK_STATE_INPUT_REQUIRED', 2, agent('q1', '?'));
  delete server.fail.send;
  await chat.send('count');
  await until(() => chat.get().question !== undefined);
  assert.deepEqual([shown(chat), idOfLast(), server.tasks.length], [['user: count', 'agent: one??'], id, 1]);
  // An answer to a question, too.
  server.fail.send = lost;
  await chat.send('two');
  const answer = idOfLast();
  await chat.send('three');
  assert.notEqual(idOfLast(), answer);
  const newest = idOfLast();
  delete server.fail.send;
  await chat.send('three');
  assert.equal(idOfLast(), newest);
  server.tasks[0]!.status('TASK_STATE_WORKING', 3).writes('four', 'a2').status('TASK_STATE_COMPLETED', 4);
  await until(() => chat.get().status === 'ready');
  assert.deepEqual(shown(chat), ['user: count', 'agent: one??', 'user: two', 'user: three', 'agent: four']);
  await chat.send('three');
  assert.deepEqual([idOfLast() === newest, server.tasks.length], [false, 2]);
});

test('a message whose response was lost counts as sent as soon as a list has it, and its answer is shown', async t => {
  const page = openPage(t);
  const server = new ChatServer();
  const chat = server.open();
  await until(() => chat.get().status === 'ready');
  server.fail.send = async () => {
    throw new A2AError('UNAVAILABLE');
  };
  await chat.send('count');
  assert.equal(chat.get().status, 'error');
  const [{ id } = assert.fail()] = chat.get().messages;
  const task = server.add(user(id, 'count')).status('TASK_STATE_WORKING', 1).writes('one');
  page.dispatchEvent(new Event('online'));
  await until(() => chat.get().status === 'streaming');
  assert.deepEqual(shown(chat), ['user: count', 'agent: one']);
  assert.deepEqual([chat.get().error, chat.get().messages[0]!.error], [undefined, undefined]);
  task.status('TASK_STATE_INPUT_REQUIRED', 2, agent('q1', 'which color?'));
  await until(() => chat.get().question?.text === 'which color?');
  await chat.send('blue');
  assert.equal(chat.get().status, 'error');
  task.history.push(user(chat.get().messages.at(-1)!.id, 'blue'));
  task.status('TASK_STATE_WORKING', 3).writes('Done.', 'a2').status('TASK_STATE_COMPLETED', 4);
  page.dispatchEvent(new Event('online'));
  await until(() => chat.get().status === 'ready');
  assert.deepEqual(shown(chat), ['user: count', 'agent: one?which color?', 'user: blue', 'agent: Done.']);
  assert.equal(server.tasks.length, 1);
});
