import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuGrowth } from '../../../test/support/cpu-growth.ts';
import { FILE_BYTES_MAX, ViewFiles } from './view-files.ts';

function bytesOf(raw: string): number {
  const files = new ViewFiles(() => {}, FILE_BYTES_MAX);
  files.update({ artifactId: 'a', parts: [{ raw }] }, 1, [{ raw }], { isReplacement: true, hasBeginning: true });
  return files.list[0]!.bytes;
}

test('padding of base64 has no bytes', () => {
  for (const text of ['', 'a', 'ab', 'abc', 'abcd']) assert.equal(bytesOf(btoa(text)), text.length);
  assert.equal(bytesOf('YQ'), 1);
});

test('the bytes of a file are counted in linear time, even if it is not base64', () => {
  const growth = cpuGrowth(characters => `${'='.repeat(characters)}A`, 2 ** 16, bytesOf);
  assert.ok(growth < 64, `16 times the file took ${growth} times the work`);
});
