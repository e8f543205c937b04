import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chromiumPath, NO_CHROMIUM } from '../e2e/browser/chromium.ts';
import { SHARDS } from '../support/cluster/cluster.ts';
import { accounts } from './accounts.ts';
import { adapters } from './adapters.ts';
import { attack } from './attack.ts';
import { benchLog, useAccounts } from './bench-cluster.ts';
import { consolePage } from './console.ts';
import { exemplars } from './exemplars.ts';
import { fairness } from './fairness.ts';
import { fanOut } from './fan-out.ts';
import { firstText } from './first-text.ts';
import { frameEncoding } from './frame-encoding.ts';
import { load } from './load.ts';
import { paced } from './paced.ts';
import { replay } from './replay.ts';
import { runBench, verdictLines } from './run-bench.ts';
import { sdkPeer } from './sdk-peer.ts';
import { stored } from './stored.ts';
import { telemetry } from './telemetry.ts';
import { through } from './through.ts';
import { throughput } from './throughput.ts';
import { ways } from './ways.ts';

benchLog.shards = SHARDS;

/** The figures of such a small run are meaningless, but a question fails if its text does not arrive complete. */
test('a tiny run of the bench works and loses nothing', { timeout: 600_000 }, async () => {
  const lines: string[] = [];
  const report = await runBench(
    [throughput, sdkPeer, firstText, fanOut, load, paced, frameEncoding, exemplars, adapters, telemetry, ways],
    'tiny',
    line => lines.push(line),
  );
  assert.deepEqual(
    report.answers.filter(({ failed }) => failed !== undefined),
    [],
  );
  const lost = report.verdicts.find(({ name }) => name === 'tokens published and not folded under load');
  assert.ok(lost?.met, lost?.line ?? 'not measured');
  for (const line of [
    report.machine.cpu,
    report.machine.node,
    ...report.answers.flatMap(({ findings }) => findings.map(({ title }) => title)),
  ]) {
    assert.ok(
      lines.some(printed => printed.includes(line)),
      `not printed: ${line}`,
    );
  }
  assert.equal(verdictLines(report).length, 2 + report.verdicts.length);
});

test('a tiny run asks every kind of remote agent directly and through Hopline, with accounts of their own', {
  timeout: 240_000,
}, async () => {
  useAccounts('agents');
  const { answers, verdicts } = await runBench([through], 'tiny', () => {});
  assert.deepEqual(
    answers.map(({ failed, findings }) => failed ?? findings.length),
    [4],
  );
  assert.equal(verdicts.length, 12);
});

test('a tiny comparison of accounts asks both clusters, in both orders', { timeout: 240_000 }, async () => {
  const { answers, verdicts } = await runBench([accounts], 'tiny', () => {});
  assert.deepEqual(
    answers.map(({ failed, findings }) => failed ?? findings.length),
    [2],
  );
  assert.equal(verdicts.length, 4);
});

test('a tiny log of stored tasks is filled, listed and restarted', { timeout: 240_000 }, async () => {
  const { answers, verdicts } = await runBench([stored], 'tiny', () => {});
  assert.deepEqual(
    answers.map(({ failed, findings }) => failed ?? findings.length),
    [3],
  );
  assert.ok(verdicts.length > 0);
});

test('a tiny replay folds every token of the log', { timeout: 120_000 }, async () => {
  const { answers, verdicts } = await runBench([replay], 'tiny', () => {});
  assert.deepEqual(
    answers.map(({ failed, findings }) => failed ?? findings.length),
    [4],
  );
  assert.equal(verdicts.length, 2);
});

test('the page of a long task shows its whole text with few elements, even while it streams, and a long list is scrolled', {
  timeout: 240_000,
  skip: chromiumPath() === undefined && NO_CHROMIUM,
}, async () => {
  const { answers, verdicts } = await runBench([consolePage], 'tiny', () => {});
  assert.deepEqual(
    answers.map(({ failed, findings }) => failed ?? findings.length),
    [3],
  );
  assert.equal(verdicts.length, 3);
});

test('tiny runs next to a busy neighbor and a stolen login work, and the quiet caller receives every token', {
  timeout: 240_000,
}, async () => {
  const { answers } = await runBench([fairness, attack], 'tiny', () => {});
  assert.deepEqual(
    answers.map(({ failed, findings }) => failed ?? findings.length),
    [2, 1],
  );
});

test('a failed question is reported, and the others still run', async () => {
  const failing = { name: 'failing', ask: () => Promise.reject(new Error('no text')) };
  const empty = { name: 'empty', ask: async () => [] };
  const report = await runBench([failing, empty], 'tiny', () => {});
  assert.deepEqual(
    report.answers.map(({ failed }) => failed),
    ['no text', undefined],
  );
  assert.deepEqual(verdictLines(report).at(-1), 'FAILED  failing: no text');
});
