import { setTimeout as sleep } from 'node:timers/promises';
import { defineAgent, needsApproval, tool } from '@hopline/agent';

/** An agent whose refunds need an approval. It streams a report for two seconds afterwards, so that a page can be reloaded in the turn of the answer. */
export default defineAgent({
  name: 'refunds',
  description: 'Pays orders back',
  async *run({ text, approval }) {
    if (approval === undefined) {
      yield 'Let me see. ';
      return yield needsApproval({ tool: 'refund', arguments: { order: text }, question: `Pay order ${text} back?` });
    }
    if (!approval.approved) return yield `Not paid: ${approval.reason ?? 'no reason'}`;
    const paid = yield* tool('refund', approval.arguments, () => `paid ${approval.arguments.order}`);
    for (let line = 0; line < 100; line += 1) {
      yield `${line} `;
      await sleep(20);
    }
    yield String(paid);
  },
});
