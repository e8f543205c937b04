import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Authenticate } from '@hopline/a2a-server';
import { until } from '../../../test/kit/until.ts';
import { call, openRig, sendParams, userMessage } from './http-server.test-kit.ts';
import { PARTY_AUDITS_MAX } from './task-audit-route.ts';

/** `subject@tenant`, or only a subject. */
const authenticate: Authenticate = async ({ headers }) => {
  const [subject, tenant] = String(headers['x-subject']).split('@');
  return { subject: subject!, ...(tenant !== undefined && { tenant }) };
};

/** A server whose audits end when the test ends them. */
async function openAudits(t: TestContext, options: { authenticate?: Authenticate } = {}) {
  const running: (() => void)[] = [];
  const read = async () => {
    const over = Promise.withResolvers<void>();
    running.push(over.resolve);
    await over.promise;
    return { audited: true };
  };
  const rig = await openRig(t, { audits: { report: read, explain: read }, ...options });
  rig.relay.onClient = taskId => rig.relay.answer(taskId, ['x']);
  const auditOf = async (subject: string) => {
    const headers = { 'x-subject': subject, 'a2a-version': '1.0' };
    const { result } = await call(rig, 'send', sendParams(userMessage('x')), { headers });
    return async (event = '') => {
      const response = await fetch(`${rig.url}/tasks/${result.task.id}/audit${event}`, { headers });
      return { status: response.status, retries: response.headers.has('retry-after') };
    };
  };
  return { running, auditOf };
}

test('audits of a tenant run one after the other, up to a bound beyond which they get 429; other tenants are still served', {
  timeout: 120_000,
}, async t => {
  const { running, auditOf } = await openAudits(t, { authenticate });
  const [ofAnna, ofEva, ofBert] = [await auditOf('anna@acme'), await auditOf('eva@acme'), await auditOf('bert')];
  const hers = Array.from({ length: PARTY_AUDITS_MAX + 1 }, (_, index) => (index % 2 === 0 ? ofAnna() : ofEva('/1.1')));
  // The one that arrives last. All of the others wait.
  assert.deepEqual(await Promise.race(hers), { status: 429, retries: true });
  assert.equal(running.length, 1);
  const his = ofBert();
  await until(() => running.length === 2);
  running[1]!();
  assert.equal((await his).status, 200);
  for (let ended = 1; ended < PARTY_AUDITS_MAX; ended += 1) {
    running.at(ended === 1 ? 0 : -1)!();
    await until(() => running.length === ended + 2);
  }
  running.at(-1)!();
  const statuses = (await Promise.all(hers)).map(({ status }) => status).sort();
  assert.deepEqual(statuses, [...Array(PARTY_AUDITS_MAX).fill(200), 429]);
});

test('two audits run at once; one more gets 503 with Retry-After', { timeout: 120_000 }, async t => {
  for (const [options, subjects] of [
    [{ authenticate }, ['anna', 'bert', 'carl']],
    [{}, ['all', 'all', 'all']],
  ] as const) {
    const { running, auditOf } = await openAudits(t, options);
    const [first, second, third] = await Promise.all(subjects.map(auditOf));
    const both = [first!(), second!()];
    await until(() => running.length === 2);
    assert.deepEqual(await third!(), { status: 503, retries: true });
    for (const end of running) end();
    for (const one of both) assert.equal((await one).status, 200);
    const next = third!();
    await until(() => running.length === 3);
    running[2]!();
    assert.equal((await next).status, 200);
  }
});
