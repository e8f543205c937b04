import assert from 'node:assert/strict';
import { test } from 'node:test';
import { blocksRun } from '../../../test/support/counted-work.ts';
import { readMessage } from './graph-message.ts';
import { Invocations } from './invocations.ts';

/** Counts the code blocks that run while a node of the outer graph ends 100 times with `open` models of its sub-graphs open. */
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

test('the cost of a node’s end does not grow with the number of open models of other graphs', async () => {
  const few = await costOfEnds(10);
  const many = await costOfEnds(5000);
  assert.ok(few >= 100, 'blocks were counted');
  assert.ok(many <= 2 * few, `${many} blocks against ${few}`);
});

/** Counts the code blocks that run for 100 whole messages and 100 searches for a text, after `known` models have streamed their texts. */
function costOfWholeMessages(known: number): Promise<number> {
  const invocations = new Invocations();
  const origin = { node: 'n', namespace: 'n:1' };
  for (let index = 0; index < known; index += 1) {
    const chunk = readMessage({ type: 'AIMessageChunk', id: `${index}`, content: `text ${index % 7}` })!;
    [...invocations.add(chunk, origin)];
  }
  assert.ok(invocations.has('text 6'));
  return blocksRun(new URL('.', import.meta.url), () => {
    for (let index = 0; index < 100; index += 1) {
      [...invocations.add(readMessage({ type: 'ai', id: `whole ${index}`, content: `other ${index}` })!, origin)];
      assert.ok(!invocations.has('none'));
    }
  });
}

test('the cost of a whole message does not grow with the number of texts streamed before it', async () => {
  const few = await costOfWholeMessages(10);
  const many = await costOfWholeMessages(5000);
  assert.ok(few >= 100, 'blocks were counted');
  assert.ok(many <= 2 * few, `${many} blocks against ${few}`);
});
