import assert from 'node:assert/strict';
import { registerHooks } from 'node:module';
import { after, before, type TestContext, test } from 'node:test';
import { openHttp } from '@hopline/a2a-http';
import { openServer } from '@hopline/a2a-server/test-kit';
import { agentCard } from '@hopline/agent-card';
import { PublishedCard } from '@hopline/agent-card/signing';
import { durableStreamsFront } from '@hopline/durable-streams-http';
import type { MemoryLog } from '@hopline/log/memory';
import { StoredScenario, supervisor } from '@hopline/task/test-kit';
import { type Shim, startShim } from './durable-streams-shim.ts';
import { chooseTests } from './vitest-on-node-test.ts';

/** The parts of the suite that read. TCK.md has the reasons why other parts do not apply. */

const config = { baseUrl: '', longPollTimeoutMs: 25_000 };
const closers: (() => unknown)[] = [];
let shim: Shim | undefined;
let front = '';
let memory: MemoryLog;

before(async () => {
  const kept = { after: (close: () => unknown) => closers.push(close) } as unknown as TestContext;
  const { server, log } = openServer(kept);
  const about = { name: 'test', description: 'test', version: '0', url: 'http://127.0.0.1/', skills: [] };
  const card = new PublishedCard(() => agentCard({ ...about, capabilities: { streaming: true } }));
  const http = openHttp(server, { card, fronts: [durableStreamsFront], cors: { origins: '*', requestHeaders: [] } });
  closers.unshift(() => http.close());
  memory = log;
  front = `${await http.listen('127.0.0.1', 0)}/`;
  const started = await startShim(front, log);
  shim = started;
  config.baseUrl = started.url;
});

after(async () => {
  shim?.closeAllConnections();
  shim?.close();
  for (const close of closers) await close();
});

const VITEST = new URL('./vitest-on-node-test.ts', import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'vitest' ? { url: VITEST, shortCircuit: true } : next(specifier, context),
});

/** Suites that test only writes. */
const WRITING_SUITES =
  /^(TTL|Fork|Idempotent|Sequence Ordering|Concurrent Writer|Content-Type Validation|Operation Sequence|Basic Stream Operations|Case-Insensitivity)/;
/**
 * Tests of other suites that read nothing, or whose result depends only on the shim: answers to writes, and bytes in the suite's own form.
 */
const WRITING_TESTS = [
  /delete/i,
  /\bseq\b|sequence ordering/,
  /TTL/,
  /content-type mismatch|missing Content-Type on POST/,
  /close-with-different-body-dedup/,
  /reject .*(empty JSON array|empty array|invalid JSON)/,
  /\bon (idempotent )?(PUT|POST)\b/,
  /empty POST body|^empty-post|Location header|PUT without Content-Type/,
  /^create-closed-(stream|returns-header):|^close-(stream-empty-post|returns|idempotent|only|nonexistent)/,
  /^(append-to-closed|append-and-close|409-includes|producer-state)|increasing offsets$/,
  // Messages of the front are JSON, without binary data and line ends.
  /base64|binary|Data-Encoding|CRLF injection|newlines in text/i,
  // Writes 10 MiB at once; an event of a task holds at most 1 MiB.
  /large payload appropriately/,
];
let readsBefore = 0;
chooseTests(
  (suites, name) => !suites.some(suite => WRITING_SUITES.test(suite)) && !WRITING_TESTS.some(one => one.test(name)),
  () => {
    const { reads } = shim!;
    assert.ok(reads > readsBefore, 'the test has not read from the front');
    readsBefore = reads;
  },
);
const { runConformanceTests } = await import('@durable-streams/server-conformance-tests');
runConformanceTests(config);

test('410 where retention has removed the next events, in every mode', async () => {
  const task = new StoredScenario(memory.facts, crypto.randomUUID());
  await task.message('go').store();
  await task.input(supervisor(), { kind: 'status', state: 'TASK_STATE_WORKING' }).store();
  const parts = [{ text: 'kept' }];
  await task
    .input(supervisor(), { kind: 'artifact', lane: 'l', artifact: { name: 'a' }, parts, append: false, last: true })
    .store();
  memory.expire('facts', task.taskId, task.newest!.seq);
  const url = `${front}tasks/${task.taskId}/stream`;
  for (const query of ['', '?offset=-1&live=long-poll', '?offset=-1&live=sse']) {
    const gone = await fetch(url + query);
    const { error } = (await gone.json()) as { error: { code: number } };
    assert.deepEqual([gone.status, error.code], [410, 410], query);
  }
  const now = await fetch(`${url}?offset=now`);
  assert.deepEqual([now.status, await now.json()], [200, []]);
});
