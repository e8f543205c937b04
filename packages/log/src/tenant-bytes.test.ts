import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryLog } from './memory/memory-log.ts';
import type { StoredSpan } from './stored-span.ts';
import {
  bytesFrom,
  changeSpans,
  groupOfTenantBytes,
  joinSpans,
  STORED_SPANS_MAX,
  tenantBytesFilter,
  tenantBytesKey,
} from './tenant-bytes.ts';

test('callers of a tenant share a key in each stream group; a caller without a tenant has its own key, and a caller without a name has none', () => {
  const [anna, bert, carl] = [{ tenant: 't', subject: 'anna' }, { tenant: 't', subject: 'bert' }, { subject: 't' }];
  assert.equal(tenantBytesKey(anna, 1), tenantBytesKey(bert, 1));
  assert.equal(new Set([tenantBytesKey(anna, 0), tenantBytesKey(anna, 1), tenantBytesKey(carl, 0)]).size, 3);
  assert.equal(groupOfTenantBytes(tenantBytesKey(anna, 12)!), 12);
  assert.deepEqual(
    [tenantBytesKey(undefined, 0), tenantBytesKey({}, 0), tenantBytesFilter({})],
    [undefined, undefined, undefined],
  );
});

test('a filter matches the entries of one tenant in all groups, and none of another', async () => {
  const log = createMemoryLog();
  const [one, other] = [{ tenant: 't' }, { tenant: 'other' }];
  for (const key of [tenantBytesKey(one, 0), tenantBytesKey(one, 1), tenantBytesKey(other, 0)])
    await changeSpans(log.taskLists, key!, spans => joinSpans(spans, [[1, 10]]));
  const found = await log.taskLists.match([tenantBytesFilter(one)!]);
  assert.deepEqual(found.map(({ key }) => key).sort(), [tenantBytesKey(one, 0), tenantBytesKey(one, 1)]);
});

test('many records need few spans, and at most the bytes of two spans are released late', () => {
  const records = STORED_SPANS_MAX * 50;
  let spans: StoredSpan[] = [];
  for (let seq = 1; seq <= records; seq += 1) spans = joinSpans(spans, [[seq, 10]]);
  assert.equal(spans.length, STORED_SPANS_MAX);
  assert.equal(bytesFrom(spans, 1), records * 10);
  for (const removed of [0.25, 0.5, 0.75]) {
    const late = bytesFrom(spans, records * removed) / (records * 10) - (1 - removed);
    assert.ok(late >= 0 && late <= 2.5 / STORED_SPANS_MAX, String(late));
  }
  assert.equal(bytesFrom(spans, records + 1), 0);
});
