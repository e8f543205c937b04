import assert from 'node:assert/strict';
import { until } from '../../../kit/until.ts';
import { type Case, pause } from './log-under-test.ts';

export const wakeUpCases: Case[] = [
  {
    name: 'a wake-up reaches every listening process of the agent until it stops, and no other agent',
    async run({ log, another }) {
      const other = await another();
      const stop = new AbortController();
      const received: string[] = [];
      const here = (key: string) => void received.push(`here ${key}`);
      log.wakeUps.listen('sleeper', here, stop.signal);
      other.wakeUps.listen('sleeper', key => void received.push(`there ${key}`), new AbortController().signal);
      other.wakeUps.listen('other', key => void received.push(`other ${key}`), new AbortController().signal);
      // The server does not confirm a subscription, so the test repeats the wake-up.
      await until(() => {
        log.wakeUps.wake('sleeper', 'begin');
        return received.includes('here begin') && received.includes('there begin');
      }, 'both listen');
      other.wakeUps.wake('sleeper', 'k-1_A');
      await until(() => received.includes('here k-1_A') && received.includes('there k-1_A'), 'both are woken up');
      stop.abort();
      log.wakeUps.wake('sleeper', 'late');
      await until(() => received.includes('there late'), 'the process that still listens');
      await pause(50);
      assert.ok(!received.includes('here late'));
      assert.ok(!received.some(key => key.startsWith('other')));
    },
  },
  {
    name: 'an invalid name or key throws TypeError, and a closed log sends no wake-up',
    async run({ another }) {
      const { wakeUps, close } = await another();
      for (const agent of ['', 'A', 'a.b', 'a b', '>', 'x'.repeat(33)]) {
        assert.throws(() => wakeUps.wake(agent, 'key'), TypeError);
        assert.throws(() => wakeUps.listen(agent, () => {}, new AbortController().signal), TypeError);
      }
      for (const key of ['', 'a.b', 'a b', '*', 'x'.repeat(65)]) assert.throws(() => wakeUps.wake('sleeper', key), TypeError);
      wakeUps.wake('sleeper', 'x'.repeat(64));
      await close();
      wakeUps.wake('sleeper', 'key');
    },
  },
];
