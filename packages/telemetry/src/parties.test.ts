import assert from 'node:assert/strict';
import test from 'node:test';
import { createHopMetrics } from './metrics.ts';
import { ownerFields, PARTIES_NAMED_MAX } from './parties.ts';
import { startMetrics } from './start-metrics.ts';
import { TURNOVER_MS, USES_MIN } from './top-names.ts';

async function start(t: test.TestContext) {
  const reader = await startMetrics({});
  t.after(() => reader.provider.shutdown());
  const metrics = createHopMetrics('relay', reader);
  const series = async () => (await reader.text()).split('\n').filter(line => line.startsWith('hopline_tenant_turns_total{'));
  return { metrics, series };
}

test('20 tenants and 20 callers are label values of a process, the 21st is other', async t => {
  const { metrics, series } = await start(t);
  for (let n = 1; n <= PARTIES_NAMED_MAX + 2; n += 1) {
    const party = metrics.parties.of({ tenant: `tenant ${n}`, subject: 'eva@example.org' });
    metrics.tenantTurns.add(1, party);
  }
  const shown = await series();
  assert.equal(shown.length, PARTIES_NAMED_MAX + 1);
  assert.match(shown[PARTIES_NAMED_MAX - 1]!, /tenant="tenant 20",caller="[0-9a-f]{12}"\} 1$/);
  assert.match(shown[PARTIES_NAMED_MAX]!, /tenant="other",caller="other"\} 2$/);
  assert.doesNotMatch(shown.join(), /eva/);
});

test('all callers of one tenant share its label, and those beyond 20 are other callers of it', async t => {
  const { metrics, series } = await start(t);
  for (let n = 1; n <= 100; n += 1) metrics.tenantTurns.add(1, metrics.parties.of({ tenant: 'acme', subject: `caller ${n}` }));
  const shown = await series();
  assert.equal(shown.length, PARTIES_NAMED_MAX + 1);
  assert.match(shown.at(-1)!, /tenant="acme",caller="other"\} 80$/);
});

test('a request without a tenant or without authentication has labels that state it', async t => {
  const { metrics, series } = await start(t);
  metrics.tenantTurns.add(1, metrics.parties.of());
  metrics.tenantTurns.add(1, metrics.parties.of({ subject: 'eva' }));
  const [anonymous, alone] = await series();
  assert.match(anonymous!, /tenant="none",caller="none"\} 1$/);
  assert.match(alone!, /tenant="none",caller="[0-9a-f]{12}"\} 1$/);
  assert.deepEqual(ownerFields(), { tenant: undefined, caller: undefined });
});

test('the series of a replaced tenant ends, and its running tasks count as other from then on', async t => {
  const { metrics, series } = await start(t);
  t.mock.method(performance, 'now', () => nowMs);
  let nowMs = performance.timeOrigin;
  const of = (tenant: string) => metrics.parties.of({ tenant });
  const quiet = of('quiet');
  metrics.tenantTurns.add(1, quiet);
  for (let n = 2; n <= PARTIES_NAMED_MAX; n += 1) for (let used = 0; used < 9; used += 1) metrics.tenantTurns.add(1, of(`t${n}`));
  for (let used = 0; used < 2 * USES_MIN; used += 1) metrics.tenantTurns.add(1, of('loud'));
  assert.match((await series()).join('\n'), /tenant="quiet".* 1\n[\s\S]*tenant="other",caller="none"\} 10$/);
  nowMs += TURNOVER_MS;
  metrics.tenantTurns.add(1, of('loud'));
  metrics.tenantTurns.add(1, quiet);
  const shown = await series();
  assert.equal(shown.length, PARTIES_NAMED_MAX + 1);
  assert.doesNotMatch(shown.join('\n'), /quiet/);
  assert.match(shown.join('\n'), /tenant="loud",caller="none"\} 1$/);
  assert.match(shown.join('\n'), /tenant="other",caller="none"\} 11$/m);
});
