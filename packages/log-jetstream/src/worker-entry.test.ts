import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Msg } from '@nats-io/nats-core';
import { parseDelivery } from './pull-inbox.ts';
import { ackSubjects, isWorkerEntry, namesLater, workerEntry } from './worker-entry.ts';

const delivery = (reply: string) => parseDelivery({ reply } as Msg)!;

test('the acknowledgements of the items of an entry reach the same deliveries', () => {
  const replies = [
    '$JS.ACK.A2A_WORK.agent-mine.1.12.7.1790000000000000000.3',
    '$JS.ACK.A2A_WORK.agent-mine.2.9.8.1790000000000000001.2',
    '$JS.ACK.A2A_WORK.agent-mine_3.1.13.1.1790000000000000002.0',
    '$JS.ACK.hub.AB12.A2A_WORK.agent-mine.1.14.9.1790000000000000003.0.x7',
  ];
  const entry = JSON.parse(JSON.stringify(workerEntry(replies.map(delivery))));
  assert.ok(isWorkerEntry(entry));
  const subjects = ackSubjects(entry, 'A2A_WORK', 'agent.mine');
  const numbers = (subject: string) => {
    const { deliveries, seq, consumerSeq } = delivery(subject);
    return [subject.split('.').slice(0, -5).join('.'), deliveries, seq, consumerSeq];
  };
  assert.deepEqual(new Set(subjects.map(subject => `${numbers(subject)}`)), new Set(replies.map(reply => `${numbers(reply)}`)));
});

test('an entry shows whether it names an item, and whether it names a later delivery', () => {
  const entry = workerEntry([delivery('$JS.ACK.A2A_WORK.agent-mine.2.9.8.1790000000000000001.2')]);
  for (const [seq, deliveries, isLater] of [
    [9, 1, true],
    [9, 2, false],
    [2, 1, false],
    [8, 1, false],
  ] as const)
    assert.equal(namesLater(entry, { seq, deliveries }), isLater, `${seq} ${deliveries}`);
});

test('an entry contains only acknowledgements for the queues of its role', () => {
  const acks = (subject: string) => ackSubjects({ queues: [{ acks: subject, items: [1, 2, 3] }] }, 'A2A_WORK', 'agent.mine');
  assert.deepEqual(acks('$JS.ACK.A2A_WORK.agent-mine.#.0.0'), ['$JS.ACK.A2A_WORK.agent-mine.1.2.3.0.0']);
  for (const other of [
    '$JS.ACK.A2A_WORK.agent-other.#.0.0',
    '$JS.ACK.A2A_WORK.supervisor.#.0.0',
    '$JS.ACK.A2A_LOG.agent-mine.#.0.0',
    '$JS.API.CONSUMER.DELETE.A2A_WORK.agent-mine.#',
    'a2a.raw.00.task.client',
    '#',
    '',
  ])
    assert.deepEqual(acks(other), [], other);
});

test('a value of any other form is not a worker’s entry', () => {
  for (const value of [
    undefined,
    null,
    7,
    {},
    { deliveries: 2, count: 1 },
    { queues: 'all' },
    { queues: [null] },
    { queues: [{ acks: 'a', items: ['1'] }] },
    { queues: [{ acks: 'a', items: [1.5] }] },
    { queues: [], takenBy: 7 },
  ])
    assert.equal(isWorkerEntry(value), false, JSON.stringify(value));
  assert.ok(isWorkerEntry({ queues: [], takenBy: 'x' }));
});
