import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Message } from '@hopline/a2a';
import type { AgentInput, ArtifactUpdated, CallStarted, Fact } from '@hopline/events';
import fc from 'fast-check';
import {
  agent,
  call,
  close,
  ended,
  open,
  plainAnswer,
  status,
  storedTask,
  supervisor,
  TaskBuilder,
  text,
} from './stored-task.test-kit.ts';
import type { StoredTask } from './stored-task.ts';
import { type TaskVerdict, verifyTask } from './verify-task.ts';

const factsOf = (task: StoredTask) => task.facts.flatMap(({ record }) => structuredClone(record.facts));
const verdictOf = (task: StoredTask) => verifyTask(task).verdict;
type Differs = Extract<TaskVerdict, { verdict: 'differs' }>;

/** The verdict of the current rules on a task in which one fact was changed. */
function verdictOfChanged(task: StoredTask, change: (facts: Fact[]) => Fact[] | undefined): Differs {
  const facts = factsOf(task);
  const verdict = verifyTask(storedTask(task, change(facts) ?? facts));
  assert.equal(verdict.verdict, 'differs', JSON.stringify(verdict));
  return verdict as Differs;
}

const chunksOf = (facts: Fact[]) =>
  facts.filter((fact): fact is ArtifactUpdated => fact.kind === 'artifact.updated' && !!fact.chunk);

test('the facts of a relay are the same, however its settings and its clock cut the chunks', () => {
  for (const coalesce of [{}, { eventCostMs: 0 }, { eventCostMs: 5_000, holdMsMax: 1_000 }, { chunkBytesMax: 64 }]) {
    const task = plainAnswer().stored(coalesce);
    assert.deepEqual(verifyTask(task), { taskId: task.taskId, verdict: 'same', facts: factsOf(task).length });
  }
});

test('an answer that names the generation of its question is the same, however the chunks before the question were cut', () => {
  for (const coalesce of [{}, { eventCostMs: 0 }, { chunkBytesMax: 8 }]) {
    const task = new TaskBuilder().message().send(supervisor(), status('TASK_STATE_WORKING'), open('b'));
    for (let n = 0; n < 20; n += 1) task.after(10).send(supervisor(), text('b', `word ${n} `));
    task.send(supervisor(), close('b'), status('TASK_STATE_INPUT_REQUIRED'));
    const { generation } = task.stored(coalesce).aggregate;
    task.after(100).message('m2', 'yes', generation).message('m3', 'too late', generation);
    task.send(supervisor(2), status('TASK_STATE_WORKING'), status('TASK_STATE_COMPLETED'));
    const stored = task.stored(coalesce);
    assert.equal(stored.aggregate.state, 'TASK_STATE_COMPLETED');
    assert.deepEqual(verifyTask(stored), { taskId: stored.taskId, verdict: 'same', facts: factsOf(stored).length });
  }
});

test('text that its producer held is verified as the same, even beside a producer that does not hold, and with half a character at its end', () => {
  for (const coalesce of [{}, { eventCostMs: 0 }, { chunkBytesMax: 8 }]) {
    const task = new TaskBuilder()
      .message()
      .send(supervisor(), status('TASK_STATE_WORKING'), open('b'), call)
      .send(agent(), open());
    const held = (...tokens: string[]) => task.after(90).held(agent(), { lane: 'a', tokens, everyMs: 30, heldMs: 60 });
    held('one ', 'two ', 'half \ud83d');
    task.after(20).send(supervisor(), text('b', 'beside '));
    held('\ude00 ', 'three', ' four').again();
    task.after(5).send(supervisor(), text('b', 'it'));
    held('five');
    const stored = task
      .send(agent(), close(), ended)
      .send(supervisor(), close('b'), status('TASK_STATE_COMPLETED'))
      .stored(coalesce);
    assert.deepEqual(verifyTask(stored), { taskId: stored.taskId, verdict: 'same', facts: factsOf(stored).length });
  }
});

test('a stored aggregate with a member that does not follow from the facts differs', () => {
  const stored = plainAnswer().stored();
  for (const more of [{ hasHistory: true }, { queued: true }, { authRequest: { n: 1, at: 1 } }, { steps: 2 }] as const) {
    const verdict = verifyTask({ ...stored, aggregate: { ...stored.aggregate, ...more } }) as Differs;
    assert.deepEqual([verdict.verdict, verdict.aggregateMember], ['differs', Object.keys(more)[0]]);
  }
  const later = { ...stored.aggregate, ofLaterVersion: 1 };
  assert.equal(verdictOf({ ...stored, aggregate: later }), 'same');
});

test('a takeover, a dead attempt, a repeated record, a late one and a rejected one are not differences', () => {
  const task = new TaskBuilder().message().send(supervisor(), status('TASK_STATE_WORKING'), call);
  task.send(agent(1, 1), open(), text('a', 'dead', ' at')).after(5_000);
  task.send(agent(1, 2), open(), text('a', 'live')).again().after(10).copyForward();
  task.send(agent(1, 1), text('a', ' late')).send({ ...agent(1, 2), item: 9 }, text('a', 'other item'));
  task.send({ ...agent(1, 2), id: 'unknown' }, open('b'), text('b', 'x')).send(agent(1, 2), text('a', ' text'), close(), ended);
  task.send(supervisor(), status('TASK_STATE_COMPLETED')).send(agent(1, 2), text('a', 'after the end')).message('m2');
  assert.equal(verdictOf(task.stored()), 'same');
});

test('a call that an earlier relay stored without its content counts as the same; one with other content differs', () => {
  const message: Message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'go' }] };
  const notice = { name: 'n', description: '', text: '' };
  const notices = { start: notice, end: notice, failed: notice };
  const presentation = { text: { as: 'own', artifact: { name: 'response' } }, progress: 'status', notices } as const;
  const held = { ...call, presentation, message } as AgentInput;
  const task = new TaskBuilder().message().send(supervisor(), status('TASK_STATE_WORKING'), held).send(agent(), open(), ended);
  const stored = task.send(supervisor(), status('TASK_STATE_COMPLETED')).stored();
  assert.equal(verdictOf(stored), 'same');
  const changed = (change: (fact: CallStarted) => Fact) =>
    storedTask(
      stored,
      factsOf(stored).map(fact => (fact.kind === 'call.started' ? change(fact) : fact)),
    );
  assert.ok(factsOf(stored).some(fact => fact.kind === 'call.started' && fact.message !== undefined));
  const { at, call: id, agent: name } = factsOf(stored).find(fact => fact.kind === 'call.started')!;
  assert.equal(verdictOf(changed(() => ({ kind: 'call.started', at, call: id, agent: name }))), 'same');
  assert.equal(verdictOf(changed(fact => ({ ...fact, message: { ...message, messageId: 'm2' } }))), 'differs');
  assert.equal(verdictOf(changed(() => ({ kind: 'call.started', at, call: id, agent: 'other' }))), 'differs');
});

test('a task with a question and its answer, a timeout, a cancel or lost inputs is verified as the same', () => {
  const asked = () =>
    new TaskBuilder().message().send(supervisor(), open(), text('a', 'which?'), status('TASK_STATE_INPUT_REQUIRED', 'which?'));
  const answered = asked().after(1_000).message('m2', 'that').send(supervisor(2), open('b'), text('b', 'fine'), close('b'));
  assert.equal(verdictOf(answered.send(supervisor(2), status('TASK_STATE_COMPLETED')).stored()), 'same');
  assert.equal(verdictOf(asked().after(60_000).timeout().stored()), 'same');
  assert.equal(
    verdictOf(new TaskBuilder().message().send(supervisor(), open(), text('a', 'so')).after(2).cancel().stored()),
    'same',
  );
  const lost = new TaskBuilder().message().send(supervisor(), open(), text('a', 'one')).send(supervisor(), text('a', 'two'));
  const withHole = lost.send(supervisor(), text('a', 'three'), status('TASK_STATE_COMPLETED'));
  withHole.inputs.splice(2, 1);
  const task = withHole.stored();
  assert.equal(task.aggregate.state, 'TASK_STATE_FAILED');
  assert.equal(verdictOf(task), 'same');
});

test('an open task is verified only as far as it is stored', () => {
  const whole = plainAnswer().stored();
  for (let count = 1; count < whole.facts.length; count += 1) {
    const facts = factsOf(whole).slice(0, count);
    const part = storedTask(whole, facts);
    // The test does not know which records the relay had folded: 1 is the lowest possible sequence.
    part.aggregate.foldedSeq = 1;
    assert.equal(verdictOf(part), 'same', `${count} facts`);
  }
  const behind = storedTask(whole, factsOf(whole).slice(0, 4));
  behind.aggregate.foldedSeq = 8;
  assert.equal(verdictOf(behind), 'differs', 'a record counts as folded, and its text is in no fact');
});

test('a lost, repeated, changed or moved token is found at the first fact that it changes', () => {
  const task = plainAnswer().stored({ eventCostMs: 0 });
  const parts = (fact: ArtifactUpdated) => fact.event.artifactUpdate.artifact.parts;
  const lost = verdictOfChanged(task, facts => facts.filter(fact => fact !== chunksOf(facts)[3]));
  assert.deepEqual([lost.level, lost.got?.kind], ['semantic', 'artifact.updated']);
  const changed = verdictOfChanged(task, facts => {
    parts(chunksOf(facts)[3]!)[0]!.text = ' tame';
    return undefined;
  });
  assert.deepEqual([changed.level, changed.inputSeq, changed.before?.generation], ['semantic', 6, 5]);
  assert.equal(parts(changed.expected as ArtifactUpdated)[0]!.text, ' tame');
  assert.equal(parts(changed.got as ArtifactUpdated)[0]!.text, ' time');
  const repeated = verdictOfChanged(task, facts => facts.flatMap(fact => (fact === chunksOf(facts)[3] ? [fact, fact] : [fact])));
  assert.equal(repeated.level, 'semantic');
  const early = verdictOfChanged(task, facts => {
    chunksOf(facts)[3]!.at -= 10_000;
    return undefined;
  });
  assert.equal(early.level, 'byte', 'a time that decreases');
  const provenance = verdictOfChanged(task, facts => {
    chunksOf(facts)[3]!.chunk!.firstSeq = 1;
    return undefined;
  });
  assert.equal(provenance.level, 'byte');
});

/** A task with a fact of every kind. */
function taskOfAllKinds(): StoredTask {
  const step: AgentInput = { kind: 'step', step: '1', payload: 1 };
  const task = new TaskBuilder().message().send(supervisor(), status('TASK_STATE_WORKING'), step, call);
  task.send(agent(), { kind: 'remote-run', run: 'r' }, open('b'), text('b', 'one ', 'two'));
  task.send(agent(), open('a'), text('a', 'three'), close('a'), close('b'));
  task.send(agent(), ended).send(supervisor(), status('TASK_STATE_INPUT_REQUIRED', 'which?')).after(50).message('m2', 'that');
  return task.send(supervisor(2), open('c'), text('c', 'four'), close('c'), status('TASK_STATE_COMPLETED')).stored();
}

test('a fact of any kind that is missing, repeated or later than the next one is found', () => {
  const task = taskOfAllKinds();
  const facts = factsOf(task);
  const kinds = new Set(facts.map(({ kind }) => kind));
  assert.equal(kinds.size, 9, [...kinds].join());
  for (const [index, { kind }] of facts.entries()) {
    const place = `${index}: ${kind}`;
    if (index > 0) assert.equal(verdictOf(storedTask(task, facts.toSpliced(index, 1))), 'differs', `without ${place}`);
    assert.equal(verdictOf(storedTask(task, facts.toSpliced(index, 0, facts[index]!))), 'differs', `twice ${place}`);
    if (index > 1) {
      const swapped = facts.toSpliced(index - 1, 2, facts[index]!, facts[index - 1]!);
      assert.equal(verdictOf(storedTask(task, swapped)), 'differs', `too early ${place}`);
    }
  }
});

test('a chunk that counts no token is found, even if its only token has no text and others follow', () => {
  const task = new TaskBuilder()
    .message()
    .send(supervisor(), open(), text('a', 'one', '', 'two'), status('TASK_STATE_COMPLETED'));
  const verdict = verdictOfChanged(task.stored({ eventCostMs: 0 }), facts => {
    const empty = chunksOf(facts)[1]!.chunk!;
    assert.equal(empty.count, 1);
    empty.count = 0;
    return undefined;
  });
  assert.deepEqual([verdict.level, (verdict.got as ArtifactUpdated).chunk?.count], ['byte', 1]);
});

test('a different end of the task is a difference in the outcome', () => {
  const task = plainAnswer().stored();
  const end = verdictOfChanged(task, facts => {
    const last = facts.at(-1);
    if (last?.kind === 'status.changed') last.event.statusUpdate.status.state = 'TASK_STATE_FAILED';
    return undefined;
  });
  assert.deepEqual([end.level, end.inputSeq], ['outcome', task.inputs.at(-1)?.seq]);
});

test('a fact that the rules decide differently is found, with its input', () => {
  const differs = verdictOfChanged(plainAnswer().stored(), facts => {
    for (const fact of facts) if (fact.kind === 'call.ended') fact.reason = 'changed';
    return undefined;
  });
  assert.deepEqual([differs.level, differs.got?.kind, differs.inputSeq], ['byte', 'call.ended', 12]);
});

function broken(): never {
  throw new TypeError('broken rule');
}

test('an error on an input is a failure that names the input', () => {
  const task = plainAnswer().stored();
  const inputs = task.inputs.map((input, index) =>
    index === 5 ? { ...input, record: new Proxy(input.record, { get: broken }) } : input,
  );
  assert.deepEqual(verifyTask({ ...task, inputs }), {
    taskId: task.taskId,
    verdict: 'failed',
    inputSeq: 6,
    reason: 'input 6: broken rule',
  });
});

test('inputs or facts that retention has removed prove nothing', () => {
  const task = plainAnswer().stored();
  assert.equal(verdictOf({ ...task, inputs: task.inputs.slice(1) }), 'expired');
  assert.equal(verdictOf({ ...task, facts: task.facts.slice(1) }), 'expired');
  assert.equal(verifyTask({ taskId: 't', unreadable: 'no' }).verdict, 'unreadable');
  for (const lacks of ['redacted content', 'inputs'] as const) {
    const verdict = verifyTask({ ...task, lacks });
    assert.ok(
      verdict.verdict === 'unreadable' &&
        verdict.reason.endsWith('export the task with --nats, and without --facts and --redact'),
    );
  }
});

const token = fc.oneof(
  fc.constantFrom('a', ' b', 'word ', '\n', '', '👍', '\ud83d', '\udc4d', '🇩🇪', 'x'.repeat(100)),
  fc.string({ maxLength: 4 }),
);
const lane = fc.constantFrom('a', 'b');
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('text' as const), lane, tokens: fc.array(token, { minLength: 1, maxLength: 6 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('open' as const), lane, artifact: fc.constant({ name: 'x' }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), lane }) },
  { weight: 1, arbitrary: fc.constant(status('TASK_STATE_WORKING', 'note')) },
  { weight: 1, arbitrary: fc.constantFrom('again' as const, 'attempt' as const, 'message' as const, 'copy' as const) },
);

test('whatever producers send and however it is coalesced, a replay decides the stored facts', () => {
  const record = fc.record({
    who: fc.constantFrom(supervisor, agent),
    steps: fc.array(step, { minLength: 1, maxLength: 4 }),
    ms: fc.nat(400),
  });
  const settings = fc.record({
    eventCostMs: fc.constantFrom(0, 40, 110, 2_000),
    holdMsMax: fc.constantFrom(20, 250),
    chunkBytesMax: fc.constantFrom(64, 32_768),
  });
  fc.assert(
    fc.property(
      fc.array(record, { maxLength: 25 }),
      settings,
      fc.constantFrom('ends', 'open', 'cancel'),
      (records, coalesce, end) => {
        const task = new TaskBuilder().message().send(supervisor(), call).send(supervisor(), open('b')).send(agent(), open('a'));
        let [turn, attempt] = [1, 1];
        for (const { who, steps, ms } of records) {
          task.after(ms);
          const inputs: AgentInput[] = [];
          for (const one of steps) {
            if (one === 'again') task.again();
            else if (one === 'copy') task.copyForward();
            else if (one === 'attempt') attempt += 1;
            else if (one === 'message') {
              turn += 1;
              task.message(`m${turn}`);
            } else inputs.push(one as AgentInput);
          }
          if (inputs.length > 0) task.send(who(turn, attempt), ...inputs);
        }
        if (end === 'cancel') task.cancel();
        if (end === 'ends') task.send(supervisor(turn, attempt), status('TASK_STATE_COMPLETED'));
        const stored = task.stored(coalesce);
        const verdict = verifyTask(stored);
        assert.equal(verdict.verdict, 'same', JSON.stringify(verdict));
      },
    ),
    { numRuns: 400 },
  );
});
