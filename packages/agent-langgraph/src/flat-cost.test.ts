import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksRun } from '../../../test/support/counted-work.ts';
import { readMessage } from './graph-message.ts';
import { Invocations } from './invocations.ts';

/** Blocks that run when a node of the outer graph ends 100 times while `open` models of its sub-graphs are open. */
function costOfEnds(open: number): Promise<number> {
  const invocations = new Invocations();
  for (let index = 0; index < open; index += 1) {
    const chunk = readMessage({ type: 'AIMessageChunk', id: `${index}`, content: 'text' })!;
    [...invocations.add(chunk, { node: 'n', namespace: `sub:${index}|n:1` })];
  }
  return blocksRun(new URL('.', import.meta.url), () => {
    for (let index = 0; index < 100; index += 1) assert.deepEqual([...invocations.endOf('n', [])], []);
  });
}

test('the end of a node does not cost more for each open model of another graph', async () => {
  const few = await costOfEnds(10);
  const many = await costOfEnds(5000);
  assert.ok(few >= 100, 'blocks were counted');
  assert.ok(many <= 2 * few, `${many} blocks against ${few}`);
});
