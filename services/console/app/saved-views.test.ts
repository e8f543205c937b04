import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COMMON_VIEWS, removeView, SAVED_VIEWS_MAX, savedViews, saveView } from './saved-views.ts';

const filters = { state: 'failed', agent: 'guide', time: '1h', longer: '10s', text: 'disk' };

function storageWith(text?: string) {
  let kept: string | null = text ?? null;
  return () => ({
    getItem: () => kept,
    setItem: (_key: string, value: string) => {
      kept = value;
    },
  });
}

test('a saved view is read again, replaced by its name, and removed', () => {
  const storage = storageWith();
  assert.deepEqual(savedViews(storage), []);
  saveView(storage, { name: 'disks', filters });
  const changed = { ...filters, state: '' };
  saveView(storage, { name: 'disks', filters: changed });
  assert.deepEqual(savedViews(storage), [{ name: 'disks', filters: changed }]);
  assert.deepEqual(removeView(storage, 'disks'), []);
  assert.deepEqual(savedViews(storage), []);
});

test(`at most ${SAVED_VIEWS_MAX} views are kept, the newest ones`, () => {
  const storage = storageWith();
  for (let index = 0; index <= SAVED_VIEWS_MAX; index += 1) saveView(storage, { name: `view ${index}`, filters });
  const names = savedViews(storage).map(({ name }) => name);
  assert.deepEqual([names.length, names[0], names.at(-1)], [SAVED_VIEWS_MAX, 'view 1', `view ${SAVED_VIEWS_MAX}`]);
});

test('content of another version, or a forbidden storage, counts as an empty storage', () => {
  for (const text of ['{', '{}', '[1, null, {"name":"a"}, {"name":"b","filters":{"state":"failed"}}]'])
    assert.deepEqual(savedViews(storageWith(text)), []);
  const forbidden = () => {
    throw new Error('SecurityError');
  };
  assert.deepEqual(saveView(forbidden, { name: 'disks', filters }), [{ name: 'disks', filters }]);
});

test('every page has views of its own, each with all filters', () => {
  assert.ok(COMMON_VIEWS.length > 2);
  for (const view of COMMON_VIEWS) assert.deepEqual(savedViews(storageWith(JSON.stringify([view]))), [view]);
});
