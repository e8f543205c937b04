import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Layouts, logSubject, rawSubject } from '@hopline/events';
import { LogNames } from './names.ts';
import { TaskSubjects } from './task-subjects.ts';

const LAYOUTS = Layouts.one(16);

for (const prefix of ['', 'blue']) {
  test(`subjects name a task and its writer, and an input's subject leads back to both, prefix "${prefix}"`, () => {
    const names = new LogNames(prefix);
    // Two of each kind are remembered. All others are computed again.
    const subjects = new TaskSubjects(names, () => LAYOUTS, 2);
    for (let round = 0; round < 2; round += 1) {
      for (const taskId of ['a', 'b', 'c', 'a2a', 'raw']) {
        assert.equal(subjects.ofFacts(taskId), names.subject(logSubject(taskId, LAYOUTS)));
        for (const writer of ['client', 'relay', 'supervisor', 'agent.argocd'] as const) {
          const subject = subjects.ofInputs(taskId, writer);
          assert.equal(subject, names.subject(rawSubject(taskId, LAYOUTS, writer)));
          assert.deepEqual(subjects.originOf(subject), { taskId, writer });
        }
      }
    }
  });
}

test('a subject in the shard of another task, or with an impossible task or writer name, has no origin', () => {
  const subjects = new TaskSubjects(new LogNames(), () => LAYOUTS);
  const valid = subjects.ofInputs('task', 'agent.argocd');
  const shard = valid.split('.')[2]!;
  const otherShard = shard === '00' ? '01' : '00';
  for (const invalid of [
    valid.replace(`.${shard}.`, `.${otherShard}.`),
    valid.replace('.task.', '.ta$sk.'),
    valid.replace('.argocd', '.Argo_CD'),
    valid.replace('agent.argocd', 'agents'),
    `${valid}.more`,
    'a2a.raw',
    'a2a.raw.00',
    'a2a.raw.00.task',
    'a2a.log.00.task',
  ]) {
    assert.equal(subjects.originOf(invalid), undefined, invalid);
    assert.equal(subjects.originOf(invalid), undefined, `${invalid}, once more`);
  }
  assert.deepEqual(subjects.originOf(valid), { taskId: 'task', writer: 'agent.argocd' });
});

test('an id or a writer that cannot be tokens of a subject is refused', () => {
  const subjects = new TaskSubjects(new LogNames(), () => LAYOUTS);
  assert.throws(() => subjects.ofFacts('a.b'), TypeError);
  assert.throws(() => subjects.ofInputs('a.b', 'client'), TypeError);
  assert.throws(() => subjects.ofInputs('a', 'agent.A' as 'agent.a'), TypeError);
});
