import { setTimeout as delay } from 'node:timers/promises';
import { defineAgent, failed, needsInput } from '@hopline/agent';

/** Counts, then asks back if the question contains "wait", and fails if it contains "fail". */
export default defineAgent({
  name: 'counter',
  description: 'Counts.',
  async *run({ text }) {
    for (let n = 0; n < 12; n += 1) {
      yield `${text.slice(0, 5)} ${n} `;
      await delay(20);
    }
    if (text.includes('wait')) yield needsInput('which one?');
    if (text.includes('fail')) yield failed('the bridge is closed');
  },
});
