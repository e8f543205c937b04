import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { artifact, data, defineAgent, needsInput, notice } from '@hopline/agent';

/** A hand-written agent: requests input, reports progress, streams its answer, and returns data and a file. */
export default defineAgent({
  name: 'dice',
  description: 'Throws dice',
  skills: [
    { id: 'throw', name: 'Throw dice', description: 'Throws the number of dice in the message', tags: ['dice', 'random'] },
  ],
  async *run(turn) {
    const count = Number(/\d+/.exec(turn.text)?.[0] ?? 0);
    if (count < 1 || count > 100) return yield needsInput('How many dice, from 1 to 100?');
    yield notice(`Throwing ${count} dice`);
    const thrown: number[] = [];
    for (let n = 0; n < count; n += 1) {
      thrown.push(randomInt(1, 7));
      yield `${thrown.at(-1)} `;
      await sleep(20, undefined, { signal: turn.signal });
    }
    const sum = thrown.reduce((total, pips) => total + pips, 0);
    yield `\nTogether ${sum}.\n`;
    yield data({ thrown, sum });
    yield artifact({ name: 'dice.csv', text: `n,pips\n${thrown.map((pips, n) => `${n + 1},${pips}\n`).join('')}` });
  },
});
