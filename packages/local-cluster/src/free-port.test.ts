import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';

const PORTS = 120;
const MODULE = JSON.stringify(new URL('free-port.ts', import.meta.url).href);
const SCRIPT = `
const { freePort } = await import(${MODULE});
console.log(JSON.stringify(await Promise.all(Array.from({ length: ${PORTS} }, freePort))));
process.stdin.resume();
`;

test('processes that run at the same time get different ports', async () => {
  const children = Array.from({ length: 3 }, () => promisify(execFile)(process.execPath, ['--input-type=module', '-e', SCRIPT]));
  const printed = Promise.all(
    children.map(async ({ child }) => JSON.parse(String((await child.stdout!.take(1).toArray())[0])) as number[]),
  );
  const ports = (await printed).flat();
  for (const { child } of children) child.stdin!.end();
  await Promise.all(children);
  assert.equal(new Set(ports).size, 3 * PORTS);
});

test('a port in use by another process is not returned', async t => {
  const next = (await freePort()) + 1;
  const server = createServer().listen(next, '127.0.0.1');
  t.after(() => server.close());
  assert.notEqual(await freePort(), next);
});

test('ports are below the range that Linux, macOS and Windows use for outgoing connections', async () => {
  const ports = await Promise.all(Array.from({ length: 60 }, freePort));
  for (const port of ports) assert.ok(port < 32_768, String(port));
});
