import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENT_LIMITS } from '../../packages/client/src/limits.ts';
import { SILENCE_MS_MAX } from '../../services/console/app/follow-task.ts';
import { ingressConfig } from '../../services/ingress/src/config.ts';
import { isTest, projectFiles, read } from './source-files.ts';

const EXPORTED = /^export const ([A-Z][A-Z\d_]*_(?:MAX|MIN|MS))\b[^=]*=\s*([^;]+);/gm;

const exportedBounds = (text: string) => [...text.matchAll(EXPORTED)].map(([, name, value]) => ({ name: name!, value: value! }));

test('no two packages or services export a bound of one name with different values', () => {
  const files = projectFiles().filter(path => /^(?:packages|services)\/.*\.tsx?$/.test(path) && !isTest(path));
  const bounds = files.flatMap(path => exportedBounds(read(path)).map(bound => ({ ...bound, path })));
  assert.ok(bounds.length > 200, `${bounds.length} bounds`);
  for (const [name, named] of Map.groupBy(bounds, bound => bound.name)) {
    const places = named.map(({ path, value }) => `${path}: ${value}`);
    assert.ok(new Set(named.map(({ value }) => value)).size === 1, `${name} has several values:\n${places.join('\n')}`);
  }
});

test('no interval of heartbeats that an ingress accepts makes a client take a stream for dead', () => {
  const seconds = /silence_seconds_max: float = (\d+)/.exec(read('packages/python/src/hopline/limits.py'))?.[1];
  const silences = [CLIENT_LIMITS.silenceMsMax, SILENCE_MS_MAX, Number(seconds) * 1_000];
  const { default: usual, max } = ingressConfig.settings.HOPLINE_SSE_HEARTBEAT_MS;
  // A round of comments takes up to half an interval.
  assert.ok(1.5 * max < Math.min(...silences), silences.join());
  assert.ok(usual <= max);
});

test('exported bounds are found with their values', () => {
  assert.deepEqual(
    exportedBounds(
      '/** A. */\nexport const A_MAX = 4_096;\nconst B_MAX = 1;\nexport const C_MS: number =\n  2 * A_MAX;\nexport const D = 3;',
    ),
    [
      { name: 'A_MAX', value: '4_096' },
      { name: 'C_MS', value: '2 * A_MAX' },
    ],
  );
});
