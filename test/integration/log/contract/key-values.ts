import assert from 'node:assert/strict';
import {
  type Change,
  KEY_CHARS_MAX,
  LogConflict,
  LogUnavailable,
  MATCHES_PER_REQUEST_MAX,
  type MessageIdEntry,
} from '@hopline/log';
import { until } from '../../../kit/until.ts';
import { all, type Case, newTask, range, within } from './log-under-test.ts';

const value = (taskId: string): MessageIdEntry => ({ taskId, fingerprint: 'f' });

/** Changes of the keys that begin with `prefix`, because all cases share the bucket. */
function watching(changes: AsyncIterable<Change<MessageIdEntry>>, prefix: string) {
  const seen: (string | undefined)[] = [];
  const ended = (async () => {
    for await (const change of changes) {
      if (change.type === 'ready') seen.push('ready');
      else if (change.key.startsWith(prefix)) seen.push(`${change.key.slice(prefix.length)}=${change.value?.taskId}`);
    }
  })();
  return { seen, ended, until: (change: string) => until(() => seen.includes(change), change) };
}

export const keyValueCases: Case[] = [
  {
    name: 'put, get and delete are visible to every process, with growing revisions',
    async run({ log, another }) {
      const key = newTask();
      const other = (await another()).messageIds;
      assert.equal(await log.messageIds.get(key), undefined);
      const first = await log.messageIds.put(key, value('a'));
      const second = await other.put(key, value('b'));
      assert.ok(second > first);
      assert.deepEqual(await log.messageIds.get(key), { key, value: value('b'), revision: second });
      await log.messageIds.delete(key);
      assert.equal(await other.get(key), undefined);
    },
  },
  {
    name: 'under returns the entries one level below a prefix: no deeper ones, no similar prefix, no deleted ones',
    async run({ log, another }) {
      const prefix = newTask();
      const other = (await another()).messageIds;
      assert.deepEqual(await log.messageIds.under(prefix), []);
      for (const key of [prefix, `${prefix}x.a`, `${prefix}.b.c`, `${prefix}.gone`]) await log.messageIds.put(key, value('x'));
      await log.messageIds.delete(`${prefix}.gone`);
      const second = await other.put(`${prefix}.b`, value('2'));
      const first = await other.put(`${prefix}.a`, value('1'));
      assert.deepEqual(await log.messageIds.under(prefix), [
        { key: `${prefix}.a`, value: value('1'), revision: first },
        { key: `${prefix}.b`, value: value('2'), revision: second },
      ]);
      assert.deepEqual(await log.messageIds.keysUnder(prefix), [`${prefix}.a`, `${prefix}.b`, `${prefix}.gone`]);
      const gone = await log.messageIds.revision();
      await other.purge(`${prefix}.gone`, gone);
      assert.deepEqual(await log.messageIds.keysUnder(prefix), [`${prefix}.a`, `${prefix}.b`], 'purged');
      for (const reads of ['under', 'keysUnder'] as const) await assert.rejects(log.messageIds[reads]('>'), TypeError);
    },
  },
  {
    name: 'match returns the current entries whose keys match a pattern, of all processes, without deleted and purged ones',
    async run({ log, another }) {
      const [a, b] = [newTask(), newTask()];
      const other = (await another()).messageIds;
      assert.deepEqual(await log.messageIds.match([`${a}.*`]), []);
      for (const key of [`${a}.1.x`, `${a}.2.x`, `${a}.2.y`, `${a}.2`, `${b}.1.x`, `${a}.gone.x`])
        await log.messageIds.put(key, value('x'));
      await log.messageIds.delete(`${a}.gone.x`);
      const revision = await other.put(`${a}.2.x`, value('newest'));
      const matching = async (...filters: string[]) => (await log.messageIds.match(filters)).map(({ key }) => key).sort();
      assert.deepEqual(await matching(`${a}.*.x`), [`${a}.1.x`, `${a}.2.x`]);
      assert.deepEqual(await matching(`${a}.2`, `*.1.x`, `${a}.none`), [`${a}.1.x`, `${a}.2`, `${b}.1.x`].sort());
      assert.deepEqual(await log.messageIds.match([`${a}.2.x`]), [{ key: `${a}.2.x`, value: value('newest'), revision }]);
      assert.equal(await log.messageIds.count(`${a}.2.*`), 2);
      await log.messageIds.purge(`${a}.2.x`, revision - 1);
      assert.equal((await log.messageIds.get(`${a}.2.x`))?.revision, revision, 'written after the revision');
      await other.purge(`${a}.2.x`, revision);
      await log.messageIds.purge(`${a}.2.x`, revision);
      assert.deepEqual(await matching(`${a}.*.x`), [`${a}.1.x`]);
      assert.equal(await log.messageIds.count(`${a}.2.*`), 1);
      assert.ok((await log.messageIds.create(`${a}.2.x`, value('again'))) > revision);
    },
  },
  {
    name: 'match returns more entries than one request to the server answers',
    async run({ log }) {
      const prefix = newTask();
      const keys = range(1, MATCHES_PER_REQUEST_MAX + 1).map(n => `${prefix}.${n}`);
      await Promise.all(keys.map(key => log.messageIds.put(key, value('x'))));
      const found = await log.messageIds.match([`${prefix}.*`]);
      assert.deepEqual(found.map(({ key }) => key).sort(), keys.sort());
      assert.equal((await log.messageIds.match(keys)).length, keys.length);
    },
  },
  {
    name: 'match returns the entries of several filters that together are more than one request to the server answers',
    async run({ log }) {
      const prefix = newTask();
      const ofEach = Math.ceil((MATCHES_PER_REQUEST_MAX + 1) / 3);
      const keys = ['a', 'b', 'c'].flatMap(group => range(1, ofEach).map(n => `${prefix}.${group}.${n}`));
      await Promise.all(keys.map(key => log.messageIds.put(key, value('x'))));
      const found = await log.messageIds.match(['a', 'b', 'c', 'none'].map(group => `${prefix}.${group}.*`));
      assert.deepEqual(found.map(({ key }) => key).sort(), keys.sort());
    },
  },
  {
    name: 'create writes a missing or deleted key, and rejects with LogConflict otherwise',
    async run({ log }) {
      const key = newTask();
      await log.messageIds.create(key, value('a'));
      await assert.rejects(log.messageIds.create(key, value('b')), LogConflict);
      assert.deepEqual((await log.messageIds.get(key))?.value, value('a'));
      await log.messageIds.delete(key);
      const revision = await log.messageIds.create(key, value('c'));
      assert.deepEqual(await log.messageIds.get(key), { key, value: value('c'), revision });
    },
  },
  {
    name: 'update writes at the current revision, and rejects with LogConflict otherwise',
    async run({ log }) {
      const key = newTask();
      await assert.rejects(log.messageIds.update(key, value('a'), 1), LogConflict);
      const first = await log.messageIds.create(key, value('a'));
      const second = await log.messageIds.update(key, value('b'), first);
      await assert.rejects(log.messageIds.update(key, value('c'), first), LogConflict);
      assert.deepEqual(await log.messageIds.get(key), { key, value: value('b'), revision: second });
    },
  },
  {
    name: 'exactly one of several processes that race to create or update a key wins',
    async run({ log, another }) {
      const other = (await another()).messageIds;
      for (const _ of range(1, 10)) {
        const key = newTask();
        const created = await Promise.allSettled([log.messageIds, other].map((bucket, i) => bucket.create(key, value(`${i}`))));
        assert.equal(created.filter(({ status }) => status === 'fulfilled').length, 1);
        await log.messageIds.delete(key);
        const again = await Promise.allSettled([log.messageIds, other].map((bucket, i) => bucket.create(key, value(`a${i}`))));
        assert.equal(again.filter(({ status }) => status === 'fulfilled').length, 1, 'after it was deleted');
        const { revision } = (await log.messageIds.get(key))!;
        const updated = await Promise.allSettled(
          [log.messageIds, other].map((bucket, i) => bucket.update(key, value(`u${i}`), revision)),
        );
        assert.equal(updated.filter(({ status }) => status === 'fulfilled').length, 1);
      }
    },
  },
  {
    name: 'a lost ack is not a conflict',
    async run({ log, loseAcks }) {
      const key = newTask();
      loseAcks(1);
      const first = await within(log.messageIds.create(key, value('a')), 'the create');
      loseAcks(1);
      const second = await within(log.messageIds.update(key, value('b'), first), 'the update');
      loseAcks(0);
      assert.deepEqual(await log.messageIds.get(key), { key, value: value('b'), revision: second });
    },
  },
  {
    name: 'watch yields the current entries, ready, then every change in order; deletions only as changes',
    async run({ log, another }) {
      const prefix = newTask();
      const other = (await another()).messageIds;
      await log.messageIds.put(`${prefix}.a`, value('1'));
      await log.messageIds.put(`${prefix}.gone`, value('1'));
      await log.messageIds.delete(`${prefix}.gone`);
      const abort = new AbortController();
      const watch = watching(log.messageIds.watch(abort.signal), `${prefix}.`);
      await watch.until('ready');
      await other.put(`${prefix}.b`, value('2'));
      await other.put(`${prefix}.a`, value('3'));
      await log.messageIds.delete(`${prefix}.b`);
      await log.messageIds.create(`${prefix}.b`, value('4'));
      await watch.until('b=4');
      abort.abort();
      await within(watch.ended, 'the end of the watch');
      assert.deepEqual(watch.seen, ['a=1', 'ready', 'b=2', 'a=3', 'b=undefined', 'b=4']);
    },
  },
  {
    name: 'revision is that of the newest write of any key, deletions included, and a watch reaches it',
    async run({ log, another }) {
      const key = `${newTask()}.a`;
      const other = (await another()).messageIds;
      const first = await log.messageIds.put(key, value('1'));
      assert.equal(await other.revision(), first);
      await log.messageIds.delete(key);
      assert(first < (await other.revision()));
      const newest = await log.messageIds.put(`${key}b`, value('2'));
      assert.equal(await other.revision(), newest);
      const abort = new AbortController();
      for await (const change of other.watch(abort.signal)) if (change.type === 'entry' && change.revision === newest) break;
    },
  },
  {
    name: 'watch of an empty bucket is ready at once; with an aborted signal it yields nothing',
    async run({ log }) {
      const abort = new AbortController();
      const seen: string[] = [];
      const watching = (async () => {
        for await (const change of log.agents.watch(abort.signal)) {
          seen.push(change.type);
          abort.abort();
        }
      })();
      await within(watching, 'ready');
      assert.deepEqual(seen, ['ready']);
      assert.deepEqual(await all(log.agents.watch(AbortSignal.abort())), []);
    },
  },
  {
    name: 'a watch that is aborted yields nothing more, not even of what has arrived',
    async run({ log }) {
      const prefix = newTask();
      await Promise.all(range(1, 20).map(n => log.messageIds.put(`${prefix}.${n}`, value(`${n}`))));
      const abort = new AbortController();
      let changes = 0;
      for await (const _change of log.messageIds.watch(abort.signal)) {
        changes += 1;
        if (changes === 2) abort.abort();
      }
      assert.equal(changes, 2);
    },
  },
  {
    name: 'watch continues after the connection was cut',
    async run({ log, another, cut }) {
      const prefix = newTask();
      const other = (await another()).messageIds;
      const abort = new AbortController();
      const watch = watching(log.messageIds.watch(abort.signal), `${prefix}.`);
      await watch.until('ready');
      await cut(async () => {
        await other.put(`${prefix}.a`, value('1'));
      });
      await watch.until('a=1');
      await other.put(`${prefix}.b`, value('2'));
      await watch.until('b=2');
      abort.abort();
      await within(watch.ended, 'the end of the watch');
      assert.deepEqual(watch.seen, ['ready', 'a=1', 'b=2']);
    },
  },
  {
    name: 'a key that NATS does not accept throws TypeError',
    async run({ log }) {
      for (const key of ['', '.a', 'a.', 'a..b', 'a b', 'a*', '>', 'ä', 'x'.repeat(KEY_CHARS_MAX + 1)]) {
        await assert.rejects(log.messageIds.get(key), TypeError);
        await assert.rejects(log.messageIds.put(key, value('a')), TypeError);
      }
      await log.messageIds.put('relay.a-b_C/1=2', value('a'));
      await log.messageIds.put('x'.repeat(KEY_CHARS_MAX), value('a'));
    },
  },
  {
    name: 'check resolves while the log is reachable; a closed log rejects with LogUnavailable',
    async run({ log, another }) {
      await log.check();
      const closed = await another();
      await closed.close();
      await assert.rejects(closed.check(), LogUnavailable);
      await assert.rejects(closed.messageIds.get('a'), LogUnavailable);
    },
  },
];
