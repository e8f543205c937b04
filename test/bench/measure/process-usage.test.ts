import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { children, cpuSecondsOf, residentKibOf, totalOf, withCpu } from './process-usage.ts';

const skip = process.platform !== 'linux' && 'requires /proc of Linux';

test("a process's CPU time equals its own measurement", { skip }, async () => {
  const before = process.cpuUsage();
  const busy = async () => {
    const until = process.cpuUsage().user + 200_000;
    while (process.cpuUsage().user < until) Math.sqrt(2);
  };
  const { cpu } = await withCpu({ self: process.pid }, busy);
  const { user, system } = process.cpuUsage(before);
  const cpuS = (user + system) / 1e6;
  assert.ok(cpu && Math.abs(cpu.self! - cpuS) < 0.1, `${cpu?.self} s, ${cpuS} s`);
  assert.equal(totalOf({ a: 1, b: 2 }), 3);
});

test("a process's resident memory equals its own measurement", { skip }, () => {
  const rssKib = process.memoryUsage.rss() / 1024;
  const read = residentKibOf(process.pid)!;
  assert.ok(Math.abs(read - rssKib) < 0.2 * rssKib, `${read} KiB, ${rssKib} KiB`);
});

test('an ended process has no figures', () => {
  assert.equal(cpuSecondsOf(2 ** 30), undefined);
  assert.equal(residentKibOf(2 ** 30), undefined);
});

test('child processes are listed until they end', { skip }, async () => {
  const child = spawn('sleep', ['30']);
  await once(child, 'spawn');
  assert.deepEqual(
    children().filter(({ program }) => program === 'sleep'),
    [{ pid: child.pid, program: 'sleep' }],
  );
  child.kill();
  await once(child, 'exit');
  assert.ok(children().every(({ pid }) => pid !== child.pid));
});
