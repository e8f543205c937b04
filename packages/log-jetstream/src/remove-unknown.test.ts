import assert from 'node:assert/strict';
import { test } from 'node:test';
import { workFilter } from '@hopline/events';
import { consumerName, LogNames } from './names.ts';
import { readerName } from './reader-name.ts';
import { GUEST_CONSUMERS_MAX, isRecord, isWorkersConsumer, unknownConsumers, workPlaceOf } from './remove-unknown.ts';

const NANOS_PER_S = 1_000_000_000;
const names = new LogNames('blue');
const READER = readerName();
const shortLived = (name: string, seconds = 30) => ({ name, config: { inactive_threshold: seconds * NANOS_PER_S } });
const durable = (name: string, filter?: string) => ({
  name,
  config: { durable_name: name, ...(filter && { filter_subject: filter }) },
});
const unknown = (listed: Parameters<typeof unknownConsumers>[0], kept: string[] = []) =>
  unknownConsumers(listed, consumer => isWorkersConsumer(consumer, names), kept);

test('readers of Hopline stay, however many there are', () => {
  const readers = Array.from({ length: 3 * GUEST_CONSUMERS_MAX }, () => shortLived(readerName()));
  assert.deepEqual(unknown(readers), []);
});

test('consumers of the queues of a role stay, with or without workers', () => {
  const known = (['supervisor', 'agent.a-1_x', 'agent.guide'] as const).flatMap(role =>
    [undefined, 0, 7].map(queue => durable(consumerName(role, queue), names.subject(workFilter(role, queue)))),
  );
  // An agent's name has no underscore, so the second consumer does not belong to a role.
  assert.deepEqual(unknown(known), ['agent-a-1_x', 'agent-a-1_x_0', 'agent-a-1_x_7']);
});

test('a durable consumer that does not belong to Hopline is removed, whatever its name', () => {
  const lasting = [
    durable('dos1'),
    durable(READER),
    shortLived(READER, 301),
    { name: READER, config: {} },
    durable('supervisor', names.subject(workFilter('agent.guide'))),
    durable('supervisor_8', names.subject(workFilter('supervisor', 8))),
  ];
  assert.deepEqual(
    unknown(lasting),
    lasting.map(({ name }) => name),
  );
});

test('short-lived consumers of other clients stay while there are few of them; if there are more, all are removed', () => {
  const guests = Array.from({ length: GUEST_CONSUMERS_MAX }, (_, index) => shortLived(`cli${index}`, 300));
  assert.deepEqual(unknown(guests), []);
  const more = [...guests, shortLived('one-more')];
  assert.equal(unknown([...more, shortLived(READER)]).length, more.length);
});

test('consumers that the operator names stay', () => {
  const listed = [durable('warehouse'), durable('audit-1'), durable('audit'), durable('warehouse2')];
  assert.deepEqual(unknown(listed, ['warehouse', 'audit-*']), ['audit', 'warehouse2']);
});

test('an item of work belongs to a queue of its role, or to none', () => {
  const cases: [subject: string, role: string, inQueue: boolean][] = [
    ['a2a.work.supervisor.t', 'supervisor', true],
    ['a2a.work.agent.guide.t', 'agent.guide', true],
    ['a2a.work.agent.guide.7.0a1b2c3d.t', 'agent.guide', true],
    ['a2a.work.agent.guide.8.0a1b2c3d.t', 'agent.guide', false],
    ['a2a.work.agent.guide.t.t', 'agent.guide', false],
    ['a2a.work.agent.guide', 'agent.guide', false],
    ['a2a.work.agent.Guide.t', 'agent.Guide', false],
    ['a2a.work.agent', 'agent', false],
    ['a2a.work.nowhere.t', 'nowhere', false],
  ];
  for (const [subject, role, inQueue] of cases) assert.deepEqual(workPlaceOf(subject), { role, inQueue }, subject);
});

test('a record of any version is kept, and answers of NATS are not records', () => {
  for (const record of ['{"v":1,"taskId":"t"}', '{"v":99}']) assert.ok(isRecord(Buffer.from(record)), record);
  const answers = [
    '',
    '{"stream":"A2A_RAW","seq":7}',
    '{"type":"io.nats.jetstream.api.v1.stream_info_response","error":{"code":404}}',
    '-ERR',
    '[1]',
  ];
  for (const answer of answers) assert.ok(!isRecord(Buffer.from(answer)), answer);
});
