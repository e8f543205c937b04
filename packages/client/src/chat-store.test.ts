import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { A2AError, approvalRequestParts, type Message, type StreamResponse, type Task, type TaskState } from '@hopline/a2a';
import { until } from '../../../test/kit/until.ts';
import { approvalResponse } from './approval-response.ts';
import { type ChatStore, type ChatStoreOptions, chatStore } from './chat-store.ts';
import { BEGINNING, type StreamItem } from './stream-position.ts';
import type { SubscribeOptions, TaskClient } from './task-client.ts';

const IDS = { taskId: 't', contextId: 'c' };
const AT = (second: number) => new Date(second * 1000).toISOString();

function message(role: Message['role'], messageId: string, text: string): Message {
  return { messageId, role, parts: [{ text }] };
}
const user = (id: string, text: string) => message('ROLE_USER', id, text);
const agent = (id: string, text: string) => message('ROLE_AGENT', id, text);

function taskOf(state: TaskState, more: Partial<Task> = {}, second = 0): Task {
  return { id: IDS.taskId, contextId: IDS.contextId, status: { state, timestamp: AT(second) }, ...more };
}

function status(state: TaskState, second: number, asks?: Message): StreamResponse {
  return { statusUpdate: { ...IDS, status: { state, timestamp: AT(second), ...(asks && { message: asks }) } } };
}

function text(artifactId: string, one: string, append = false): StreamResponse {
  return { artifactUpdate: { ...IDS, artifact: { artifactId, parts: [{ text: one }] }, append, lastChunk: false } };
}

const CREATED = taskOf('TASK_STATE_SUBMITTED');
const WORKING = (second: number) => status('TASK_STATE_WORKING', second);
const COMPLETED = (second: number) => status('TASK_STATE_COMPLETED', second);
const ASKS = (second: number, id: string, one: string) => status('TASK_STATE_INPUT_REQUIRED', second, agent(id, one));

type Call = (...args: unknown[]) => Promise<unknown>;

/** A client whose server has one task. The test supplies the responses to sends and lists, in order. */
class OneTask {
  readonly events: StreamResponse[] = [];
  readonly cursors: (string | undefined)[] = [];
  sends: Call[] = [];
  lists: Call[] = [];
  readonly #broken: Error[] = [];
  #changed = Promise.withResolvers<void>();

  push(...events: StreamResponse[]): void {
    this.events.push(...events);
    this.#wake();
  }

  /** Ends the stream that is open. */
  break(error: Error): void {
    this.#broken.push(error);
    this.#wake();
  }

  get client(): TaskClient {
    const unused = async () => assert.fail('an unexpected call');
    const next =
      (calls: () => Call[]) =>
      (...args: unknown[]) =>
        (calls().shift() ?? unused)(...args);
    const subscribe = (_id: string, options: SubscribeOptions = {}) => this.#subscribe(options);
    return { subscribe, send: next(() => this.sends), list: next(() => this.lists), get: unused, cancel: unused } as never;
  }

  open(options: ChatStoreOptions = {}): ChatStore {
    const chat = chatStore(this.client, options);
    chat.subscribe(() => {});
    return chat;
  }

  async *#subscribe({ cursor, signal, onNotice }: SubscribeOptions): AsyncGenerator<StreamItem, void, undefined> {
    this.cursors.push(cursor);
    onNotice?.({ kind: 'opened' });
    const streams = this.cursors.length;
    let sent = Number(cursor?.split('.')[0]);
    for (;;) {
      signal?.throwIfAborted();
      const event = this.events[sent];
      const error = this.#broken[streams - 1];
      if (event !== undefined) {
        sent += 1;
        yield { cursor: `${sent}.1`, event };
      } else if (error !== undefined) throw error;
      else await this.#changed.promise;
    }
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }
}

const accepted: Call = async () => ({ task: CREATED });
const refused: Call = async () => {
  throw new A2AError('QUOTA_EXCEEDED');
};

const shown = (chat: ChatStore) => chat.get().messages.map(({ role, text: one }) => `${role}: ${one}`);

/** A chat whose agent has answered "Hm. " to "paint" and asked. */
async function asked(): Promise<{ server: OneTask; chat: ChatStore }> {
  const server = new OneTask();
  server.sends = [accepted];
  const chat = server.open();
  await chat.send('paint');
  server.push({ task: CREATED }, WORKING(1), text('a1', 'Hm. '), ASKS(2, 'q1', 'which color?'));
  await until(() => chat.get().question?.text === 'which color?');
  assert.equal(chat.get().status, 'ready');
  return { server, chat };
}

test('an answer that cannot be sent is an error, and its question is open until it is answered', async () => {
  const { server, chat } = await asked();
  server.sends = [refused, accepted];
  await chat.send('blue');
  assert.equal(chat.get().status, 'error');
  assert.match(String(chat.get().error), /QUOTA_EXCEEDED|quota/i);
  assert.equal(chat.get().question?.text, 'which color?');
  assert.deepEqual(shown(chat), ['user: paint', 'agent: Hm. ', 'user: blue']);
  assert.equal(chat.get().messages.at(-1)?.error, chat.get().error);
  const sent = chat.send('blue, please');
  assert.deepEqual([chat.get().status, chat.get().error, chat.get().question], ['submitted', undefined, undefined]);
  await sent;
  assert.equal(chat.get().status, 'submitted');
  server.push(WORKING(3), text('a2', 'Done. '));
  await until(() => chat.get().status === 'streaming');
  const expected = ['user: paint', 'agent: Hm. ', 'user: blue', 'user: blue, please', 'agent: Done. '];
  assert.deepEqual(shown(chat), expected);
  assert.deepEqual(
    chat.get().messages.map(({ error }) => error !== undefined),
    [false, false, true, false, false],
  );
  server.push(ASKS(4, 'q2', 'and the frame?'));
  await until(() => chat.get().question?.text === 'and the frame?');
  assert.equal(chat.get().status, 'ready');
  assert.deepEqual(shown(chat), expected);
});

test('a call is approved or refused by the parts of an approval, which the chat shows as text', async () => {
  const server = new OneTask();
  const sent: unknown[] = [];
  const received: Call = async message => {
    sent.push((message as Message).parts);
    return { task: CREATED };
  };
  server.sends = [received, received, received];
  const chat = server.open();
  await chat.send('refund order 17');
  const asks = (second: number, callId: string) => {
    const parts = approvalRequestParts({ callId, tool: 'refund', arguments: { order: '17' } });
    server.push(status('TASK_STATE_INPUT_REQUIRED', second, { messageId: `q-${callId}`, role: 'ROLE_AGENT', parts }));
    return until(() => chat.get().question?.approval?.callId === callId);
  };
  server.push({ task: CREATED }, WORKING(1));
  await asks(2, 'c1');
  await chat.send(approvalResponse(chat.get().question!.approval!, false, ' Too much. '));
  assert.equal(chat.get().question, undefined);
  server.push(WORKING(3));
  await asks(4, 'c2');
  await chat.send(approvalResponse(chat.get().question!.approval!, true));
  server.push(WORKING(5), text('a1', 'Refunded.'), COMPLETED(6));
  await until(() => chat.get().status === 'ready');
  assert.deepEqual(sent, [
    [{ text: 'refund order 17' }],
    [{ text: 'Too much.' }, { data: { approvalResponse: { callId: 'c1', approved: false, reason: 'Too much.' } } }],
    [{ text: 'Approved' }, { data: { approvalResponse: { callId: 'c2', approved: true } } }],
  ]);
  assert.deepEqual(
    chat.get().messages.flatMap(({ role, text: one }) => (role === 'user' ? [one] : [])),
    ['refund order 17', 'Too much.', 'Approved'],
  );
  assert.deepEqual(approvalResponse({ callId: 'c3' }, false, ' ')[0], { text: 'Refused' });
});

test('if the stream for an answer was refused, the task is followed again from its cursor', async () => {
  const { server, chat } = await asked();
  server.break(new A2AError('UNAUTHENTICATED'));
  await until(() => chat.get().status === 'error');
  assert.equal(chat.get().question?.text, 'which color?');
  server.sends = [accepted];
  await chat.send('blue');
  assert.deepEqual([chat.get().status, chat.get().error], ['submitted', undefined]);
  server.push(WORKING(3), text('a2', 'Done.'), COMPLETED(4));
  await until(() => chat.get().status === 'ready');
  assert.deepEqual(server.cursors, [BEGINNING, '4.1']);
  assert.deepEqual(shown(chat), ['user: paint', 'agent: Hm. ', 'user: blue', 'agent: Done.']);
});

test('two messages that answer one question begin one turn, and the next question is open', async () => {
  const { server, chat } = await asked();
  server.sends = [accepted, accepted];
  await Promise.all([chat.send('blue'), chat.send('dark blue')]);
  server.push(WORKING(3), text('a2', 'Done. '));
  await until(() => chat.get().status === 'streaming');
  server.push(ASKS(4, 'q2', 'and the frame?'));
  await until(() => chat.get().question?.text === 'and the frame?');
  assert.equal(chat.get().status, 'ready');
  assert.deepEqual(shown(chat), ['user: paint', 'agent: Hm. ', 'user: blue', 'user: dark blue', 'agent: Done. ']);
  server.sends = [accepted];
  await chat.send('white');
  server.push(WORKING(5), text('a3', 'Framed.'), COMPLETED(6));
  await until(() => chat.get().status === 'ready');
  assert.deepEqual(shown(chat).slice(-3), ['agent: Done. ', 'user: white', 'agent: Framed.']);
});

for (const { which, sends, before, after } of [
  { which: 'first', sends: [refused, accepted], before: 'submitted', after: 'ready' },
  { which: 'second', sends: [accepted, refused], before: 'submitted', after: 'error' },
]) {
  test(`two messages answer one question, and the ${which} cannot be sent: the question is answered`, async () => {
    const { server, chat } = await asked();
    server.sends = sends;
    await Promise.all([chat.send('blue'), chat.send('dark blue')]);
    assert.deepEqual([chat.get().status, chat.get().question], [before, undefined]);
    server.push(WORKING(3), text('a2', 'Done.'), COMPLETED(4));
    await until(() => chat.get().messages.at(-1)?.view?.state === 'TASK_STATE_COMPLETED');
    assert.equal(chat.get().status, after, 'an error stays until the next message');
    assert.deepEqual(
      chat.get().messages.map(({ error }) => error !== undefined),
      [false, false, which === 'first', which === 'second', false],
    );
  });
}

for (const { why, history, turns } of [
  { why: 'whose second message was sent while the agent worked', history: [user('m1', 'count'), user('m2', 'faster')], turns: 1 },
  {
    why: 'with two turns',
    history: [user('m1', 'count'), agent('q1', 'how far?'), user('m2', 'ten')],
    turns: 2,
  },
  { why: 'whose question had no text', history: [user('m1', 'count'), user('m2', 'ten')], turns: 2 },
]) {
  test(`a task ${why} is shown from the list until its stream is as new, then while it streams`, async () => {
    const server = new OneTask();
    const first = [text('a1', 'one '), ASKS(2, 'q1', 'how far?')];
    const artifacts = [{ artifactId: 'a1', parts: [{ text: 'one ' }] }];
    const earlier = [{ task: CREATED }, WORKING(1), ...(turns === 1 ? [] : first)];
    const listedAt = turns === 1 ? 1 : 3;
    const at = turns === 1 ? 'a1' : 'a2';
    const listed = taskOf('TASK_STATE_WORKING', { history, artifacts }, listedAt);
    server.lists = [async () => ({ tasks: [listed] })];
    const values: string[][] = [];
    const chat = chatStore(server.client, { contextId: 'c' });
    chat.subscribe(({ messages }) => {
      if (messages.length > 0) values.push(messages.map(({ role, text: one }) => `${role}: ${one}`));
    });
    const [asks, more] = [history[0]!.parts[0]!.text!, history.at(-1)!.parts[0]!.text!];
    await until(() => values.length > 0);
    const fromList = [`user: ${asks}`, `user: ${more}`, 'agent: one '];
    assert.deepEqual(values, [fromList]);
    for (const event of earlier) {
      server.push(event);
      await turn();
    }
    if (turns === 2) server.push(WORKING(3));
    server.push(text(at, turns === 1 ? 'one ' : 'two '));
    const next = turns === 1 ? fromList : [`user: ${asks}`, 'agent: one ', `user: ${more}`, 'agent: two '];
    server.push(text(at, 'three ', true));
    const whole = [...next.slice(0, -1), `${next.at(-1)}three `];
    await until(() => chat.get().status === 'streaming' && shown(chat).at(-1) === whole.at(-1));
    assert.deepEqual(shown(chat), whole);
    for (const one of values)
      assert.ok(
        [fromList, next, whole].some(value => `${value}` === `${one}`),
        `${one}`,
      );
    server.push(ASKS(5, 'q9', 'more?'));
    await until(() => chat.get().question?.text === 'more?');
    assert.equal(chat.get().status, 'ready');
  });
}

test('a list that fails is an error while nothing else is known, and a message reads it again', async () => {
  const server = new OneTask();
  const failed: Call = async () => {
    throw new A2AError('PERMISSION_DENIED');
  };
  server.lists = [failed, failed];
  const chat = server.open({ contextId: 'c' });
  assert.equal(chat.get().status, 'loading');
  await until(() => chat.get().status === 'error');
  server.sends = [accepted];
  await chat.send('hello');
  assert.deepEqual([chat.get().status, chat.get().error, server.lists.length], ['submitted', undefined, 0]);
  server.push({ task: CREATED }, WORKING(1), text('a1', 'Hi.'), COMPLETED(2));
  await until(() => chat.get().status === 'ready');
  assert.equal(chat.get().error, undefined);
  const earlier = taskOf('TASK_STATE_COMPLETED', { id: 'earlier', history: [user('m0', 'good morning')], artifacts: [] });
  server.lists = [async () => ({ tasks: [earlier] })];
  server.sends = [async () => ({ message: agent('m9', 'Bye.') })];
  await chat.send('bye');
  await until(() => shown(chat).length === 6);
  assert.deepEqual(shown(chat), ['user: good morning', 'agent: ', 'user: hello', 'agent: Hi.', 'user: bye', 'agent: Bye.']);
  assert.equal(chat.get().status, 'ready');
});

test('a first message that cannot be sent stays with its error, and the next one begins a task', async () => {
  const server = new OneTask();
  server.sends = [refused, accepted];
  const chat = server.open();
  await chat.send('hello');
  assert.deepEqual([chat.get().status, shown(chat)], ['error', ['user: hello']]);
  assert.equal(chat.get().messages[0]?.error, chat.get().error);
  await chat.send('hello again');
  server.push({ task: CREATED }, WORKING(1), text('a1', 'Hi.'), COMPLETED(2));
  await until(() => chat.get().status === 'ready');
  assert.deepEqual(shown(chat), ['user: hello', 'user: hello again', 'agent: Hi.']);
});
