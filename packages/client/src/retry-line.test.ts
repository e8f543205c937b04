import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { RetryLine } from './retry-line.ts';

async function newestOf(text: string, cut: number): Promise<number | undefined> {
  const bytes = new TextEncoder().encode(text);
  const line = new RetryLine();
  const chunks = (async function* () {
    yield bytes.subarray(0, cut);
    yield bytes.subarray(cut);
  })();
  let read = 0;
  for await (const chunk of line.watch(chunks)) read += chunk.length;
  assert.equal(read, bytes.length);
  return line.ms;
}

test('the newest retry line counts, however chunks are split', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 999_999_999 }),
      fc.nat(60),
      fc.constantFrom('\n', '\r\n'),
      async (ms, cut, end) => {
        const text = ['retry: 7', 'data: retry: 8', '', `retry:${ms}`, 'event: drain', 'data: {}', '', ''].join(end);
        assert.equal(await newestOf(text, cut), ms);
      },
    ),
  );
});

test('invalid, overlong and partial retry lines are ignored', async () => {
  for (const line of [
    'retry: soon',
    'retry: 1e3',
    'retry: -1',
    'retry: 9999999999',
    ' retry: 5',
    'retry',
    `retry: 5${' '.repeat(40)}`,
  ])
    assert.equal(await newestOf(`${line}\n\n`, 3), undefined);
});
