import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../../test/kit/until.ts';
import type { Connection } from './connection.ts';
import { QueueReports } from './open-queues.ts';

const QUEUES = 25_000;

test('a delayed message is sent, however many other queues get work in the meantime', async t => {
  const sent: string[] = [];
  const closed = new AbortController();
  t.after(() => closed.abort());
  const send = (subject: string) => void sent.push(subject);
  const connection = { closed: closed.signal, send, names: { subject: (subject: string) => subject } };
  const reports = new QueueReports(connection as unknown as Connection);
  reports.report('agent.first', undefined);
  reports.report('agent.first', undefined);
  for (let n = 0; n < QUEUES; n += 1) reports.report(`agent.n${n}`, undefined);
  const [first] = sent;
  assert.equal(sent.length, 1 + QUEUES);
  await until(() => sent.filter(subject => subject === first).length === 2);
});
