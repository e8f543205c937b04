import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SHARDS } from '../support/cluster/cluster.ts';
import { pictureOf } from './picture.ts';
import { changesOf } from './samples.ts';
import { soak } from './soak.ts';
import { TimedText, timedToken } from './timed-token.ts';

test('a short soak: no answer is incomplete while processes restart and agents come and go, and every value is sampled', {
  timeout: 300_000,
}, async t => {
  const { samples, answers, restarts, visits, faults } = await soak({
    minutes: 0.15,
    streams: 4,
    tokens: 40,
    everyMs: 20,
    restartEveryMs: 2_000,
    visitEveryMs: 4_000,
    sampleEveryMs: 1_000,
    shards: SHARDS,
    print: line => t.diagnostic(line),
  });
  assert.deepEqual(faults, []);
  assert.ok(answers > 0 && restarts > 0 && visits > 0);
  const names = new Set(samples.flatMap(({ values }) => Object.keys(values)));
  for (const name of ['MiB nats-server', 'consumers', 'subjects in streams', 'MiB in streams', 'MiB on disk', 'age p99, ms'])
    assert.ok(names.has(name), name);
});

test('a token that is missing, repeated or out of order is noticed, however the text is cut', () => {
  const tokens = [0, 1, 2].map(index => timedToken(index, 1_000 + index));
  const read = (...pieces: string[]) => {
    const text = new TimedText();
    return pieces.flatMap(piece => text.add(piece));
  };
  assert.deepEqual(read(...tokens.join('')), [1_000, 1_001, 1_002]);
  assert.deepEqual(read(tokens.join('')), [1_000, 1_001, 1_002]);
  for (const wrong of [[0, 2], [0, 0], [1]])
    assert.throws(() => read(...wrong.map(index => tokens[index]!)), /arrived in place of/);
});

test('a change compares the second tenth of a run with the last; a picture has a chart for each kind of value', () => {
  const samples = Array.from({ length: 20 }, (_, n) => ({
    atMinutes: n,
    values: { consumers: n < 10 ? 10 : 30, 'MiB relay-1': 5 },
  }));
  assert.deepEqual(changesOf(samples)[0], { name: 'consumers', early: 10, late: 30, ratio: 3 });
  const picture = pictureOf(samples);
  assert.equal(picture.match(/<polyline/g)?.length, 2);
  assert.match(picture, />MiB of each process</);
});
