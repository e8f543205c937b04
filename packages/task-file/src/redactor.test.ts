import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { AgentRecord, CallContent, Fact, FactRecord } from '@hopline/events';
import fc from 'fast-check';
import { collect } from '../../../test/kit/collect.ts';
import { exampleEntries, HEADER, OUTCOME } from './example-task.test-kit.ts';
import type { RecordEntry } from './format.ts';
import { readTaskFile } from './read-task-file.ts';
import { Redactor } from './redactor.ts';
import { withheldFromOwner } from './withheld.ts';
import { writeTask } from './write-task.ts';

const KEY = new Uint8Array(32).fill(7);
const SECRET = 'hunter2';
const FROM = { id: 'call-1-1', agent: 'guide', turn: 1, item: 3, attempt: 1 };
const message = (text: string) => ({ messageId: `m-${text}`, role: 'ROLE_AGENT' as const, parts: [{ text }] });

/** Content of a call's work, with a text in every member that a client or an agent fills. */
const callContent = (text: string): CallContent => ({
  presentation: {
    text: { as: 'own', artifact: { name: 'response' } },
    progress: 'status',
    notices: { start: notice(text), end: notice(text), failed: notice(text) },
  },
  message: message(text),
  metadata: { why: text },
  resume: { token: text },
  trace: { traceparent: text },
});
const notice = (text: string) => ({ name: 'n', description: text, text });

/** A record with a text in every member that an agent fills. */
function agentRecord(text: string): RecordEntry {
  const record: AgentRecord = {
    v: 1,
    at: 1,
    from: FROM,
    n: 1,
    inputs: [
      {
        kind: 'open',
        lane: 'call-1-1/answer',
        artifact: { name: 'streaming_result', description: text, metadata: { a: [text, 7] } },
      },
      { kind: 'text', lane: 'call-1-1/answer', tokens: [text, ' ', text], ids: [`id-${text}`, '', ''], dt: [0, 1, 2] },
      {
        kind: 'artifact',
        lane: 'call-1-1/file',
        artifact: { name: 'response' },
        parts: [
          { raw: Buffer.from(`${text}..`).toString('base64'), filename: text, mediaType: 'text/plain' },
          { url: `https://example.com/${text}` },
          { data: { [text]: text } },
        ],
        append: false,
        last: true,
        source: { mode: 'custom', node: 'plan' },
      },
      { kind: 'step', step: '1', payload: { prompt: text } },
      {
        kind: 'ended',
        call: 'call-1-1',
        state: 'TASK_STATE_FAILED',
        message: message(text),
        metadata: { why: text },
        history: [message(text)],
        withheldText: text,
        reason: text,
        resume: { token: text },
      },
      { kind: 'status', state: 'TASK_STATE_WORKING', message: message(text), resume: text, metadata: { deep: { key: text } } },
      { kind: 'remote-run', run: { taskId: text } },
      { kind: 'agent-step', step: 'pay', n: 1, phase: 'stored', outcome: { value: { [text]: text } } },
      { kind: 'call', call: 'call-1-1', agent: 'guide', ...callContent(text) },
    ],
  };
  return { kind: 'input', seq: 9, storedAt: 2, writer: 'agent.guide', record };
}

it('a redacted file contains no text and no id, and is still a task file', async () => {
  const redactor = new Redactor(KEY);
  const header = redactor.header({ ...HEADER, owner: { tenant: SECRET, subject: SECRET } });
  const entries = [...exampleEntries([SECRET]), agentRecord(SECRET)].map(entry => redactor.entry(entry));
  let text = '';
  for await (const line of writeTask(header, entries, { outcome: OUTCOME })) text += line;
  for (const secret of [
    SECRET,
    Buffer.from(`${SECRET}..`).toString('base64'),
    HEADER.taskId,
    HEADER.contextId,
    'explain',
    'traceparent',
  ])
    assert.ok(!text.includes(secret), secret);
  const read = await collect(readTaskFile([Buffer.from(text)]));
  assert.equal(read.length, entries.length + 2);
  assert.deepEqual(header.redacted, ['text']);
});

it('a redacted record keeps words of the protocol; its metadata keeps only names, structure and booleans', () => {
  const pseudonym = (taskId: string) => new Redactor(KEY).header({ ...HEADER, taskId }).taskId;
  const metadata = { state: SECRET, count: 7, isOn: true, none: null, list: [SECRET, 3] };
  const hidden = { state: 'xxxxxxx', count: 0, isOn: true, none: null, list: ['xxxxxxx', 0] };
  const record = {
    v: 1,
    at: 5,
    from: 'client',
    trace: { traceparent: SECRET },
    input: {
      kind: 'message',
      message: {
        messageId: 'm',
        role: 'ROLE_USER',
        parts: [
          { raw: 'aGk=', mediaType: 'text/plain' },
          { data: 'ab', metadata },
        ],
        referenceTaskIds: ['other', ''],
        metadata,
      },
      contextId: 'c',
      role: 'supervisor',
      profile: 'caipe',
      request: { ...metadata, agent: SECRET, 'hopline.dialect': 'legacy', 'hopline.receivedAt': 8 },
    },
  };
  const entry = { kind: 'input', seq: 9, storedAt: 2, writer: 'client', record } as unknown as RecordEntry;
  assert.deepEqual(new Redactor(KEY).entry(entry), {
    kind: 'input',
    seq: 9,
    storedAt: 2,
    writer: 'client',
    record: {
      v: 1,
      at: 5,
      from: 'client',
      input: {
        kind: 'message',
        message: {
          messageId: pseudonym('m'),
          role: 'ROLE_USER',
          parts: [
            { raw: 'xxxx', mediaType: 'text/plain' },
            { data: { redacted: 'xxxx' }, metadata: hidden },
          ],
          referenceTaskIds: [pseudonym('other'), ''],
          metadata: hidden,
        },
        contextId: pseudonym('c'),
        role: 'supervisor',
        profile: 'caipe',
        request: { ...hidden, agent: 'xxxxxxx', 'hopline.dialect': 'legacy', 'hopline.receivedAt': 8 },
      },
    },
  });
});

it('a redacted text keeps its length and its white space, whether joined or in tokens', () => {
  const redactor = new Redactor(KEY);
  const textOf = (text: string) => {
    const entry = redactor.entry(agentRecord(text));
    const text2 = (entry.record as AgentRecord).inputs[1];
    return text2?.kind === 'text' ? text2.tokens[0]! : assert.fail();
  };
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (one, other) => {
      assert.equal(textOf(one).length, one.length);
      assert.equal(textOf(one) + textOf(other), textOf(one + other));
      assert.equal(textOf(one).replace(/x/g, ''), one.replace(/\S/g, ''));
    }),
  );
});

it('equal ids get equal pseudonyms, and another key gives others', () => {
  const [one, again, other] = [KEY, KEY, new Uint8Array(32)].map(key => new Redactor(key).header(HEADER).taskId);
  assert.equal(one, again);
  assert.notEqual(one, other);
  const [, created] = exampleEntries().map(entry => new Redactor(KEY).entry(entry));
  assert.equal((created!.record as FactRecord).aggregate.taskId, one);
});

it('the owner of a task gets its texts, but not what only services read', () => {
  const shown = JSON.stringify(withheldFromOwner(agentRecord(SECRET)));
  const { inputs } = JSON.parse(shown).record;
  assert.deepEqual(inputs[1].tokens, [SECRET, ' ', SECRET]);
  assert.equal(inputs[2].source, undefined);
  assert.deepEqual(inputs[3], { kind: 'step', step: '1', payload: null });
  assert.deepEqual(inputs[4], { kind: 'ended', call: 'call-1-1', state: 'TASK_STATE_FAILED' });
  assert.equal(inputs[5].resume, undefined);
  assert.equal(inputs[5].message.parts[0].text, SECRET);
  assert.deepEqual(inputs[6], { kind: 'remote-run', run: null });
  assert.deepEqual(inputs[7], { kind: 'agent-step', step: 'pay', n: 1, phase: 'stored' });
  assert.deepEqual(inputs[8], { kind: 'call', call: 'call-1-1', agent: 'guide' });
});

it('the facts that the owner of a task gets are those that clients receive', () => {
  const step = { kind: 'step.recorded', at: 1, step: '1', payload: SECRET } as const;
  const ended = {
    kind: 'call.ended',
    at: 1,
    call: 'c',
    agent: 'guide',
    state: 'TASK_STATE_COMPLETED',
    withheldText: SECRET,
  } as const;
  const lane = {
    kind: 'lane.opened',
    at: 1,
    lane: 'l',
    producer: 'c',
    attempt: 1,
    artifact: {},
    source: { mode: SECRET },
  } as const;
  const call = { kind: 'call.started', at: 1, call: 'c', agent: 'guide', ...callContent(SECRET) } as const;
  const [, entry] = exampleEntries();
  assert.ok(entry?.kind === 'facts');
  // A relay of a later version stores facts that this version does not know.
  const unknown = { kind: 'secret.stored', at: 1, secret: SECRET } as unknown as Fact;
  const facts = [...entry.record.facts, step, ended, lane, call, unknown];
  const authRequest = { message: message('Sign in'), resume: { token: SECRET } };
  const aggregate = { ...entry.record.aggregate, calls: { c: { agent: 'guide', authRequest }, d: { agent: 'guide' } } };
  const shown = withheldFromOwner({ ...entry, record: { ...entry.record, facts, aggregate } });
  assert.ok(!JSON.stringify(shown).includes(SECRET));
  assert.deepEqual((shown.record as FactRecord).facts[0], entry.record.facts[0]);
  assert.deepEqual((shown.record as FactRecord).aggregate.calls, {
    c: { agent: 'guide', authRequest: { message: message('Sign in') } },
    d: { agent: 'guide' },
  });
  const kinds = (shown.record as FactRecord).facts.slice(-4).map(({ kind }) => kind);
  assert.deepEqual(kinds, ['step.recorded', 'call.ended', 'lane.opened', 'call.started']);
});
