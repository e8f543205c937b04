import assert from 'node:assert/strict';
import { type Case, pause, until } from './log-under-test.ts';

export const wakeUpCases: Case[] = [
  {
    name: 'a wake-up reaches every process of that agent which listens, until it stops, and no other agent',
    async run({ log, another }) {
      const other = await another();
      const stop = new AbortController();
      const heard: string[] = [];
      const here = (key: string) => void heard.push(`here ${key}`);
      log.wakeUps.listen('sleeper', here, stop.signal);
      other.wakeUps.listen('sleeper', key => void heard.push(`there ${key}`), new AbortController().signal);
      other.wakeUps.listen('stranger', key => void heard.push(`stranger ${key}`), new AbortController().signal);
      // Nobody is told when a server knows of a listener.
      await until(() => {
        log.wakeUps.wake('sleeper', 'begin');
        return heard.includes('here begin') && heard.includes('there begin');
      }, 'both listen');
      other.wakeUps.wake('sleeper', 'k-1_A');
      await until(() => heard.includes('here k-1_A') && heard.includes('there k-1_A'), 'both are woken up');
      stop.abort();
      log.wakeUps.wake('sleeper', 'late');
      await until(() => heard.includes('there late'), 'the one that goes on');
      await pause(50);
      assert.ok(!heard.includes('here late'));
      assert.ok(!heard.some(key => key.startsWith('stranger')));
    },
  },
  {
    name: 'nobody is woken up by a bad name or key, nor from a log that is closed',
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
