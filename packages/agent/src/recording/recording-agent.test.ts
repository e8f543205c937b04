import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { collect } from '../../../../test/kit/collect.ts';
import type { Turn } from '../agent.ts';
import { dueTimes, PACE_MAX } from './pace.ts';
import { RecordingError } from './recording.ts';
import { createRecordingAgent } from './recording-agent.ts';

const turn = (signal: AbortSignal, attempt = 1): Turn => ({
  taskId: 't',
  contextId: 'c',
  history: [],
  message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'play' }] },
  metadata: {},
  attempt,
  trace: {},
  signal,
});

async function file(t: TestContext, lines: object[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'recording-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'r.jsonl');
  await writeFile(path, lines.map(line => JSON.stringify(line)).join('\n'));
  return path;
}

test('every token has its own id, even in a second attempt [S0-22]', async t => {
  const agent = await createRecordingAgent({ path: await file(t, [{ t: 'ha' }, { t: 'ha' }]), pace: 'burst' });
  const signal = new AbortController().signal;
  const events = [...(await collect(agent.run(turn(signal)))), ...(await collect(agent.run(turn(signal, 2))))];
  const tokens = events.filter(event => event.type === 'text');
  assert.equal(tokens.map(token => token.text).join(''), 'hahahaha');
  assert.equal(new Set(tokens.map(token => token.id)).size, 4);
  assert.equal(events.at(-1)?.type, 'done');
});

test('the recording plays at the times in the file', async t => {
  const agent = await createRecordingAgent({
    path: await file(t, [
      { t: 'a', ms: 0 },
      { t: 'b', ms: 60 },
    ]),
  });
  const start = performance.now();
  await collect(agent.run(turn(new AbortController().signal)));
  assert.ok(performance.now() - start >= 58);
});

test('a cancelled turn stops while it waits', async t => {
  const agent = await createRecordingAgent({
    path: await file(t, [
      { t: 'a', ms: 0 },
      { t: 'b', ms: 60_000 },
    ]),
  });
  const stop = new AbortController();
  const events = agent.run(turn(stop.signal))[Symbol.asyncIterator]();
  await events.next();
  const second = events.next();
  stop.abort();
  await assert.rejects(second, { name: 'AbortError' });
});

test('due times: even, in packets, at once', () => {
  const recording = { tokens: Array.from({ length: 1000 }, () => 'x') };
  assert.equal(dueTimes(recording, 500)(250), 500);
  assert.equal(dueTimes(recording, 'burst')(999), 0);
  const packets = dueTimes(recording, 'packets');
  const dues = recording.tokens.map((_, index) => packets(index));
  const sizes = [...Map.groupBy(dues, due => due).values()].map(group => group.length);
  assert.ok(Math.max(...sizes) <= 12 && new Set(sizes).size > 5);
  assert.ok(dues.every((due, index) => index === 0 || due >= dues[index - 1]!));
  assert.ok(Math.abs(dues.at(-1)! - 20_000) < 400, 'about 50 tokens a second');
});

test('an impossible pace is refused', () => {
  const recording = { tokens: ['x'] };
  assert.throws(() => dueTimes(recording, 'recorded'), RecordingError);
  assert.throws(() => dueTimes(recording, 0), RecordingError);
  assert.throws(() => dueTimes(recording, Number.NaN), RecordingError);
  assert.throws(() => dueTimes(recording, PACE_MAX + 1), RecordingError);
  assert.equal(dueTimes(recording, PACE_MAX)(0), 0);
});
