import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RequestError } from './connection.ts';
import { chunksOf, type FollowedItem, followTask } from './follow-task.ts';

const ids = { taskId: 't', contextId: 'c' };
const frame = (cursor: string, event: object) => `id: ${cursor}\ndata: ${JSON.stringify(event)}\n\n`;
const text = (generation: number) =>
  frame(`${generation}.${generation}`, {
    artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: `${generation}` }] } },
  });
const completed = (generation: number) =>
  frame(`${generation}.${generation}`, { statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED' } } });

/**
 * Follows a task over these responses, each of which is the text or the error of one connection. A wait that the return of the network does not end is
 * negative.
 */
async function follow(
  responses: (string | null | Error)[],
): Promise<{ items: FollowedItem[]; cursors: string[]; waits: number[] }> {
  const [items, cursors, waits]: [FollowedItem[], string[], number[]] = [[], [], []];
  const open = async (cursor: string) => {
    cursors.push(cursor);
    const next = responses.shift();
    if (next === undefined) throw new RequestError(404, 'too many connections');
    if (next instanceof Error) throw next;
    return new Response(next);
  };
  const sleep = async (ms: number, _signal: AbortSignal, onOnline: (() => void) | undefined) => {
    waits.push(onOnline === undefined ? -ms : ms);
  };
  const stop = new AbortController();
  for await (const item of followTask({ taskId: 't', open, sleep, signal: stop.signal, random: () => 1 })) items.push(item);
  return { items, cursors, waits };
}

const generationsOf = (items: FollowedItem[]) =>
  items.flatMap(item => ('event' in item ? [Number.parseInt(item.cursor!, 10)] : []));

test('each connection continues after the last cursor: no event is missing or repeated', async () => {
  const broken = `${text(1)}${text(2)}id: 3.3\ndata: {"artif`;
  const { items, cursors } = await follow([broken, text(2) + text(3), new TypeError('network'), completed(4)]);
  assert.deepEqual(generationsOf(items), [1, 2, 3, 4]);
  assert.deepEqual(cursors, ['0.0', '2.2', '3.3', '3.3']);
});

test('waits grow while nothing arrives, and restart after progress', async () => {
  const fault = () => new RequestError(503, 'starting');
  const { waits } = await follow([fault(), fault(), text(1), fault(), ...Array.from({ length: 9 }, fault), completed(2)]);
  assert.deepEqual(waits.slice(0, 4), [250, 500, 250, 500]);
  assert.equal(Math.max(...waits), 5_000);
});

test('a delay that the server asks for is obeyed, with jitter on top, and the return of the network does not end it', async () => {
  const busy = new RequestError(429, 'slow down', 3_000);
  const { waits } = await follow([busy, busy, `${text(1)}event: drain\ndata: {}\n\n`, completed(2)]);
  assert.deepEqual(waits, [-3_250, -3_500, -750]);
});

test('a server that has lost events continues before the cursor', async () => {
  const lost = 'event: gap\ndata: {"missing":{"from":4,"to":4}}\n\n';
  const task = frame('2.2', { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } });
  const { items } = await follow([text(3), lost + task]);
  assert.deepEqual(generationsOf(items), [3, 2]);
});

test('a response without content is the end of a task whose last event has arrived', async () => {
  const { items, cursors } = await follow([text(1), null]);
  assert.deepEqual([generationsOf(items), cursors], [[1], ['0.0', '1.1']]);
});

test('a permanent refusal ends the stream; a rate limit does not', async () => {
  await assert.rejects(follow([new RequestError(404, 'no such task')]), { message: 'no such task' });
  const { items } = await follow([new RequestError(429, 'slow down'), completed(1)]);
  assert.deepEqual(generationsOf(items), [1]);
});

test('expired events are reported once, with the task that follows', async () => {
  const gap = 'event: gap\ndata: {"missing":{"from":1,"to":5}}\n\n';
  const task = frame('6.6', { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } } });
  const { items } = await follow([gap + task]);
  assert.deepEqual(items.slice(1, 2), [{ gap: { from: 1, to: 5 } }]);
  assert.deepEqual(generationsOf(items), [6]);
});

test('frames of unknown kinds and frames that are not JSON are skipped', async () => {
  const { items } = await follow([`${frame('1.1', { later: {} })}id: 2.2\ndata: {nonsense\n\n${completed(3)}`]);
  assert.deepEqual(generationsOf(items), [3]);
});

test('a stream that is silent for too long fails, and its connection is closed', async () => {
  const closed = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    start: controller => controller.enqueue(new Uint8Array([1])),
    cancel: () => closed.resolve(),
  });
  const chunks: Uint8Array[] = [];
  const reading = async () => {
    for await (const chunk of chunksOf(body, 50)) chunks.push(chunk);
  };
  await assert.rejects(reading(), /no byte has arrived for 0.05 s/);
  await closed.promise;
  assert.deepEqual(chunks, [new Uint8Array([1])]);
});
