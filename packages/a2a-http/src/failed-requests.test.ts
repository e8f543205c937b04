import assert from 'node:assert/strict';
import { after, before, type TestContext, test } from 'node:test';
import type { Authenticate } from '@hopline/a2a-server';
import { LogUnavailable } from '@hopline/log';
import { createLogger, startTelemetry, type Telemetry } from '@hopline/telemetry';
import { call, openRig, sendParams, userMessage } from './http-server.test-kit.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;

let telemetry: Telemetry;
// Log lines take their trace from the active context.
before(async () => {
  telemetry = await startTelemetry({ service: 'ingress', instance: 'ingress-1', version: '0', env: {} });
});
after(() => telemetry.shutdown());

type Line = { level: string; msg: string; code: string; method: string; task_id: string; trace_id: string } & {
  tenant?: string;
  caller?: string;
};

/** Opens a server with one task, and collects its log lines as an operator sees them. */
async function openFailing(t: TestContext, authenticate?: Authenticate) {
  const written: Line[] = [];
  const destination = { write: (line: string) => void written.push(JSON.parse(line)) };
  const logger = createLogger({ service: 'ingress', instance: 'ingress-1', level: 'info', destination });
  const fail = () => Promise.reject(new LogUnavailable('no leader'));
  const audits = { report: fail, explain: () => Promise.reject(new Error('a defect')) };
  const rig = await openRig(t, { logger, audits, exportTask: fail, ...(authenticate && { authenticate }) });
  rig.relay.onClient = taskId => rig.relay.publish(taskId, { kind: 'status', state: 'TASK_STATE_WORKING' });
  const { result } = await call(rig, 'send', sendParams(userMessage('x'), '1.0', { blocking: false }), {
    headers: { 'x-subject': 'eva' },
  });
  const lines = () => written.splice(0).filter(({ msg }) => msg.startsWith('request '));
  const ask = async (path: string) =>
    (await fetch(`${rig.url}${path}`, { headers: { traceparent, 'a2a-version': '1.0' } })).status;
  return { rig, lines, ask, taskId: result.task.id as string };
}

test('failed requests outside A2A are counted, and their log lines name trace, task and method', async t => {
  const { rig, lines, ask, taskId } = await openFailing(t);
  const requests = [
    [`/tasks/${taskId}/audit`, 503, 'request refused', 'audit_task'],
    [`/tasks/${taskId}/audit/1.1`, 500, 'request failed', 'explain_event'],
    [`/tasks/${taskId}/export`, 503, 'request refused', 'export_task'],
  ] as const;
  const before = rig.totals.requests;
  for (const [index, [path, status, message, name]] of requests.entries()) {
    assert.equal(await ask(path), status);
    assert.deepEqual(
      lines().map(({ msg, method, task_id, trace_id }) => [msg, method, task_id, trace_id]),
      [[message, name, taskId, TRACE]],
    );
    assert.equal(rig.totals.requestErrors, index + 1);
  }
  assert.equal(rig.totals.requests, before, 'they do not count as A2A requests');
  assert.equal(await ask('/tasks/no*id/audit'), 404);
  assert.deepEqual(
    [lines(), rig.totals.requestErrors],
    [[], requests.length + 1],
    'a mistake of the client is counted, not logged',
  );
});

test('a failed A2A request names trace, task and method in its log line, in every binding', async t => {
  const { rig, lines, ask, taskId } = await openFailing(t);
  rig.log.facts.last = () => Promise.reject(new LogUnavailable('no leader'));
  const fields = () => lines().map(({ msg, code, method, task_id, trace_id }) => [msg, code, method, task_id, trace_id]);
  const expected = [['request refused', 'UNAVAILABLE', 'get_task', taskId, TRACE]];
  await call(rig, 'get', { id: taskId }, { headers: { traceparent } });
  assert.deepEqual(fields(), expected);
  assert.equal(await ask(`/tasks/${taskId}`), 503);
  assert.deepEqual(fields(), expected);
  rig.log.inputs.append = () => Promise.reject(new Error('a defect'));
  await call(rig, 'send', sendParams(userMessage('x')), { headers: { traceparent } });
  const [[message, , method, created, trace] = []] = fields();
  assert.deepEqual([message, method, trace], ['request failed', 'send_message', TRACE]);
  assert.match(String(created), /^[\w-]{8,}$/, 'the task that it would have created');
});

test('a failed request names the tenant and the hash of its caller in its log line, never the subject', async t => {
  const { rig, lines, taskId } = await openFailing(t, async ({ headers }) => ({
    tenant: 'acme',
    subject: String(headers['x-subject']),
  }));
  rig.log.facts.last = () => Promise.reject(new LogUnavailable('no leader'));
  await call(rig, 'get', { id: taskId }, { headers: { 'x-subject': 'eva' } });
  const [line] = lines();
  assert.deepEqual([line?.msg, line?.tenant, line?.caller], ['request refused', 'acme', '1e02621f1062']);
  assert.doesNotMatch(JSON.stringify(line), /eva/);
});
