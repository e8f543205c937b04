import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCoalescer } from './coalescer.ts';
import {
  CHUNK_BYTES_MIN,
  type CoalesceSettings,
  checkSettings,
  DEFAULT_SETTINGS,
  EVENT_COST_MS_MAX,
  HOLD_MS_MAX,
} from './settings.ts';

const check = (change: Partial<CoalesceSettings>) => checkSettings({ ...DEFAULT_SETTINGS, ...change });

test('every setting is accepted at its bounds and rejected by name beyond them [C-20]', () => {
  checkSettings(DEFAULT_SETTINGS);
  for (const eventCostMs of [0, EVENT_COST_MS_MAX]) check({ eventCostMs });
  for (const holdMsMax of [1, HOLD_MS_MAX]) check({ holdMsMax });
  check({ chunkBytesMax: CHUNK_BYTES_MIN });
  for (const eventCostMs of [-1, EVENT_COST_MS_MAX + 1, Number.NaN])
    assert.throws(() => check({ eventCostMs }), /RangeError: eventCostMs/);
  for (const holdMsMax of [0, HOLD_MS_MAX + 1, Number.NaN]) assert.throws(() => check({ holdMsMax }), /RangeError: holdMsMax/);
  for (const chunkBytesMax of [CHUNK_BYTES_MIN - 1, 5.5, Number.POSITIVE_INFINITY])
    assert.throws(() => check({ chunkBytesMax }), /RangeError: chunkBytesMax/);
  assert.throws(() => createCoalescer({ holdMsMax: 0 }), RangeError);
});
