import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HistoryLost, type RecordMark, type ShardProgress } from '@hopline/log';
import { CHECK_OFTEN_MS, CHECK_OLD_MS, QUIET_MS, StoredRecords } from './stored-records.ts';

const mark = (seq: number, taskId: string): RecordMark => ({ seq, id: `${taskId}:append-${seq}` });
const LAST_INPUT = 90;

/** The records of a shard, and a log that has lost those in `lost`. */
function recordsOf(progress: Partial<ShardProgress> = {}, { leadership = 'n1', hasOwnerDied = false } = {}) {
  const state = { nowMs: 0, losses: 0, lost: new Set<number>(), checked: [] as number[], answer: Promise.resolve() };
  const records = new StoredRecords(progress, {
    facts: {
      isLost: async ({ seq }) => {
        state.checked.push(seq);
        await state.answer;
        return state.lost.has(seq);
      },
    },
    leadership: async () => leadership || undefined,
    lastInput: async () => LAST_INPUT,
    hasOwnerDied,
    now: () => state.nowMs,
    onLost: () => {
      state.losses += 1;
    },
  });
  const checked = async () => {
    state.checked = [];
    await records.check();
    return state.checked.toSorted((one, other) => one - other);
  };
  const unproven = () => (records.progress(0, false).unproven ?? []).map(({ seq }) => seq).toSorted((one, other) => one - other);
  return { records, state, checked, unproven };
}

test('a log that has every record that the lease names is trusted: nothing is read again', async () => {
  const { records, state } = recordsOf({ newest: mark(7, 'a'), unproven: [mark(5, 'b')], leadership: 'n1' });
  await records.begin();
  assert.deepEqual(state.checked, [5, 7]);
  assert.deepEqual([state.losses, records.refoldTo, records.leapTo], [0, undefined, undefined]);
  const { newest, leadership, isInDoubt } = records.progress(3, false);
  assert.deepEqual([newest, leadership, isInDoubt], [mark(7, 'a'), 'n1', undefined]);
});

test('after the loss of any record that the lease names, all inputs are read again and no mark is left', async () => {
  for (const seq of [5, 7]) {
    const { records, state } = recordsOf({ newest: mark(7, 'a'), unproven: [mark(5, 'b')], leadership: 'n1' });
    state.lost.add(seq);
    await records.begin();
    assert.deepEqual([state.losses, records.refoldTo, records.leapTo], [1, LAST_INPUT, LAST_INPUT]);
    const expected = { refoldTo: LAST_INPUT, leadership: 'n1', leapTo: LAST_INPUT, unproven: [] };
    assert.deepEqual(records.progress(LAST_INPUT - 1, false), expected);
    assert.equal(records.progress(LAST_INPUT, false).refoldTo, undefined, 'every input is folded again');
  }
});

test('the marks leave the lease in the same step as the checkpoint', async () => {
  let seen: unknown;
  const records = new StoredRecords(
    { newest: mark(7, 'a') },
    {
      facts: { isLost: async () => true },
      leadership: async () => 'n1',
      lastInput: async () => LAST_INPUT,
      hasOwnerDied: false,
      now: () => 0,
      onLost: () => {
        seen = records.progress(0, false).newest ?? 'no mark';
      },
    },
  );
  await records.begin();
  assert.equal(seen, 'no mark');
});

test('a loss that the lease cannot name is ruled out only if the stream of facts has had one leader', async () => {
  for (const [progress, options, leapTo] of [
    [{ leadership: 'n1' }, { hasOwnerDied: true }, undefined],
    [{ leadership: 'n2' }, { hasOwnerDied: true }, LAST_INPUT],
    [{}, { hasOwnerDied: true, leadership: '' }, LAST_INPUT],
    [{ leadership: 'n2' }, {}, undefined],
    [{ leadership: 'n2', isInDoubt: true }, {}, LAST_INPUT],
    [{ leadership: 'n2', refoldTo: 4 }, {}, 4],
  ] as const) {
    const { records } = recordsOf(progress, options);
    assert.equal(records.progress(0, false).isInDoubt, 'hasOwnerDied' in options || 'isInDoubt' in progress || undefined);
    await records.begin();
    assert.equal(records.leapTo, leapTo, JSON.stringify([progress, options]));
    assert.equal(records.progress(0, false).isInDoubt, undefined);
    assert.equal(records.progress(0, true).isInDoubt, true, 'an append without an answer');
  }
});

test('each check reads the newest record and the record of the last check, so a loss between them is found', async () => {
  const { records, state, checked } = recordsOf();
  records.add(mark(1, 'a'));
  assert.deepEqual(await checked(), [1]);
  records.add(mark(2, 'a'));
  records.add(mark(3, 'a'));
  assert.deepEqual(await checked(), [1, 3], 'the append of 3 proves 2');
  state.lost.add(3);
  records.add(mark(4, 'b'));
  await assert.rejects(records.check(), HistoryLost);
});

test('the record of a task is checked once: when the task is quiet, or when it leaves memory', async () => {
  const { records, state, checked, unproven } = recordsOf();
  for (const [seq, taskId] of [
    [1, 'quiet'],
    [2, 'busy'],
    [3, 'leaves'],
    [4, 'newest'],
  ] as const)
    records.add(mark(seq, taskId));
  assert.deepEqual(unproven(), [1, 2, 3, 4], 'the lease names every record that no append has proved');
  assert.deepEqual(await checked(), [4]);
  records.release('leaves');
  state.nowMs = QUIET_MS;
  const lastInputAt = (taskId: string) => (taskId === 'quiet' ? 0 : taskId === 'busy' ? 1 : undefined);
  for (let sweep = 0; sweep < 2; sweep += 1) records.addQuiet(lastInputAt);
  assert.deepEqual(await checked(), [1, 3, 4]);
  records.addQuiet(lastInputAt);
  records.release('quiet');
  assert.deepEqual(await checked(), [4]);
});

test('a newest record whose task is not in memory is checked once another task has stored a newer one', async () => {
  const { records, checked } = recordsOf({ newest: mark(1, 'of the previous owner') });
  records.add(mark(2, 'a'));
  assert.deepEqual(await checked(), [1, 2]);
  assert.deepEqual(await checked(), [2]);
});

test('the record named by the index is checked until a loss is known', async () => {
  const { records, checked } = recordsOf({ newest: mark(1, 'a') });
  records.addIndexed('gone', 8);
  assert.deepEqual(await checked(), [1, 8]);
  const after = recordsOf({ refoldTo: LAST_INPUT });
  after.records.addIndexed('gone', 8);
  assert.deepEqual(await after.checked(), []);
});

test('concurrent checks share the next one, which sees the records of all', async () => {
  const { records, state } = recordsOf();
  const { promise, resolve } = Promise.withResolvers<void>();
  records.add(mark(1, 'a'));
  state.answer = promise;
  const first = records.check();
  records.add(mark(2, 'a'));
  const [second, third] = [records.check(), records.check()];
  assert.equal(second, third);
  resolve();
  await Promise.all([first, second]);
  assert.deepEqual(state.checked, [1, 1, 2]);
});

test('records that a check has not reached stay on the list', async () => {
  const { records, state, checked } = recordsOf({ unproven: [mark(1, 'a')] });
  state.answer = Promise.reject(new Error('no leader'));
  state.answer.catch(() => {});
  await assert.rejects(records.check(), /no leader/);
  state.answer = Promise.resolve();
  assert.deepEqual(await checked(), [1]);
});

test('a check is due at every sweep, and only every CHECK_OLD_MS if the newest record is old and no other record waits', () => {
  const { records, state } = recordsOf();
  const isDueAt = (ms: number) => {
    state.nowMs = ms;
    return records.isCheckDue();
  };
  records.add(mark(1, 'a'));
  assert.deepEqual([isDueAt(CHECK_OFTEN_MS - 2), isDueAt(CHECK_OFTEN_MS - 1), isDueAt(CHECK_OFTEN_MS)], [true, true, false]);
  assert.deepEqual([isDueAt(CHECK_OFTEN_MS - 1 + CHECK_OLD_MS), isDueAt(CHECK_OFTEN_MS + CHECK_OLD_MS)], [true, false]);
  records.release('a');
  assert.equal(isDueAt(CHECK_OFTEN_MS + CHECK_OLD_MS + 1), true, 'a record waits for its check');
  records.add(mark(2, 'a'));
  assert.equal(isDueAt(CHECK_OFTEN_MS + CHECK_OLD_MS + 2), true, 'the newest record is new');
});
