import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DIALECTS, Fold } from '@hopline/a2a';
import { answer, startForeignAgent } from '../agents/foreign-agent.ts';
import { pythonWith } from '../agents/python-agent.ts';
import { Cluster } from '../cluster/cluster.ts';

const CLIENT = fileURLToPath(new URL('python/rest_client_0_3.py', import.meta.url));
const TOKENS = ['Grüße ', 'ha', 'ha', ' 👩‍🚀', '  done ✅'];
const CLIENT_MS_MAX = 60_000;

type Shown = { id: string; taskId: string; pushNotificationConfig: object; status: { state: string } };
type Report = Record<'sent' | 'answer' | 'named' | 'canceled' | 'read', Shown> & {
  streamed: Record<string, unknown>[];
  followed: Shown[];
  missing: number;
};

const python = pythonWith('0.3');

test('S3-22 the Python SDK of 0.3 over HTTP+JSON: its parser, which refuses what it does not know, reads everything', {
  skip: python === undefined && 'no Python with a2a-sdk 0.3 (A2A_PYTHON_0_3)',
}, async t => {
  const script = ({ text }: { text: string }) => (text === 'ask' ? [{ inputRequired: 'Which one?' }] : answer(TOKENS));
  const foreign = await startForeignAgent({ dialect: '0.3', script });
  t.after(() => foreign.close());
  const agents = [{ name: 'foreign', adapter: 'a2a', url: foreign.url }];
  await using cluster = await Cluster.start({ agents, env: { HOPLINE_PUSH: 'true' } });
  const { stdout } = await promisify(execFile)(python!, [CLIENT, cluster.url], { timeout: CLIENT_MS_MAX });
  const report = JSON.parse(stdout) as Report;
  assert.equal(report.sent.status.state, 'input-required');
  const fold = new Fold();
  for (const result of report.streamed) {
    const decoded = DIALECTS['0.3'].decodeEvent(result);
    assert('event' in decoded);
    fold.add(decoded.event);
  }
  assert.deepEqual(fold.violations, []);
  assert.equal(fold.textOf('streaming_result'), TOKENS.join(''));
  assert.equal(report.read.status.state, 'completed');
  const id = report.canceled.id;
  assert.deepEqual([report.followed[0]?.id, report.canceled.status.state, report.missing], [id, 'canceled', 404]);
  const pushNotificationConfig = {
    id,
    url: 'https://hooks.example.org/',
    authentication: { schemes: ['Bearer'], credentials: '' },
    token: '',
  };
  assert.deepEqual(report.answer, { taskId: id, pushNotificationConfig });
  assert.deepEqual(report.named, report.answer);
});
