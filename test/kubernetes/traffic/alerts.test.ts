import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { type Firing, firingsOf, judgeFirings } from './alerts.ts';
import { FAULT_KINDS, FAULT_NAMES, type FaultKind } from './fault-kinds.ts';
import type { Struck } from './report.ts';

const firing = (alert: string, startMs: number): Firing => ({
  alert,
  severity: 'ticket',
  about: '',
  startMs,
  endMs: startMs + 1,
});
const struck = (fault: Struck['fault'], beganAt: number, endedAt: number): Struck => ({
  fault,
  beganAt,
  endedAt,
  detail: '',
  problems: [],
});

test('an alert that pauses for longer than a step has fired twice', () => {
  const metric = { __name__: 'ALERTS', alertname: 'HoplineOwnersLost', severity: 'ticket', job: 'hopline', service: 'relay' };
  const values = [30, 45, 60, 105, 120].map((at): [number, string] => [at, '1']);
  const of = { alert: 'HoplineOwnersLost', severity: 'ticket', about: 'service=relay' };
  assert.deepEqual(firingsOf([{ metric, values }], 15_000), [
    { ...of, startMs: 30_000, endMs: 60_000 },
    { ...of, startMs: 105_000, endMs: 120_000 },
  ]);
});

test('an alert is right if a fault that may cause it ran shortly before', () => {
  const faults = [struck('relay', 100_000, 130_000), struck('certificates', 300_000, 400_000)];
  const judged = judgeFirings([firing('HoplineOwnersLost', 140_000), firing('HoplineOwnersLost', 350_000)], faults);
  assert.deepEqual(
    judged.map(({ explanation }) => explanation?.fault),
    [FAULT_KINDS.relay.name, undefined],
  );
});

test('an alert before its fault is wrong, and so is one that no fault may cause', () => {
  const faults = [struck('relay', 100_000, 130_000)];
  const judged = judgeFirings([firing('HoplineOwnersLost', 90_000), firing('HoplineGaps', 120_000)], faults);
  assert.ok(judged.every(({ explanation }) => explanation === undefined));
});

test('faults explain only alerts that exist', () => {
  const rules = readFileSync(new URL('../../../infra/helm/hopline/rules/alerts.yaml', import.meta.url), 'utf8');
  const names = FAULT_NAMES.flatMap(name => Object.keys((FAULT_KINDS[name] as FaultKind).alerts));
  for (const name of names) assert.match(rules, new RegExp(`alert: ${name}\\n`));
});
