import assert from 'node:assert/strict';
import { until } from '../../../kit/until.ts';
import type { Case } from './log-under-test.ts';

export const presenceCases: Case[] = [
  {
    name: 'a member is present for every process until it leaves or its process dies, and no other member is',
    async run({ log, another }) {
      const [leaving, dying] = [await another(), await another()];
      const stop = new AbortController();
      leaving.presence.enter('relay.leaves', stop.signal);
      dying.presence.enter('relay.dies', new AbortController().signal);
      const isPresent = async (member: string) => !(await log.presence.isGone(member));
      await until(async () => (await isPresent('relay.leaves')) && (await isPresent('relay.dies')), 'both are present');
      assert.equal(await isPresent('relay.never'), false);
      stop.abort();
      await until(async () => !(await isPresent('relay.leaves')), 'one has left');
      assert.equal(await isPresent('relay.dies'), true);
      await dying.close();
      await until(async () => !(await isPresent('relay.dies')), 'one has died');
    },
  },
  {
    name: 'a member whose key is not one of the bucket of leases throws TypeError',
    async run({ log }) {
      for (const member of ['', '.a', 'a b', '*', '>'])
        assert.throws(() => log.presence.enter(member, new AbortController().signal), TypeError);
    },
  },
  {
    name: 'a closed log knows of no member that is gone',
    async run({ another }) {
      const { presence, close } = await another();
      await close();
      assert.equal(await presence.isGone('relay.never'), false);
    },
  },
];
