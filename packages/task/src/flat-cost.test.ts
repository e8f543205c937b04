import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Fact } from '@hopline/events';
import { bytesAllocated } from '../../../test/support/counted-work.ts';
import { TaskViewBuilder } from './project.ts';
import { Scenario } from './scenario.test-kit.ts';

const FACTS = 5_000;

const updates: { [what: string]: (index: number) => { artifactId: string; append: boolean } } = {
  artifacts: index => ({ artifactId: `${index}`, append: false }),
  'parts of one artifact': () => ({ artifactId: 'a', append: true }),
};

for (const [what, updateOf] of Object.entries(updates)) {
  test(`a task that is read from the log is not copied for each of its ${what}`, async () => {
    const { facts, aggregate } = new Scenario().message('go');
    const records = Array.from({ length: FACTS }, (_, index) => {
      const { artifactId, append } = updateOf(index);
      const artifactUpdate = { taskId: 't1', contextId: 'c1', artifact: { artifactId, parts: [{ data: index }] }, append };
      const around = { at: 1, generation: index + 2, lane: 'l', producer: 'agent', attempt: 1, transitory: true } as const;
      const update: Fact = { kind: 'artifact.updated', ...around, event: { artifactUpdate } };
      return { v: 1 as const, facts: [update], aggregate: aggregate!, startSeq: 1, startStoredAt: 1 };
    });
    const builder = new TaskViewBuilder();
    builder.add({ v: 1, facts, aggregate: aggregate!, startSeq: 1, startStoredAt: 1 });
    const bytes = await bytesAllocated(() => {
      for (const record of records) builder.add(record);
    });
    // Copying the list for each fact would allocate 100 MB.
    assert.ok(bytes < 20_000_000, `${bytes} bytes`);
    const { artifacts } = builder.view!.task;
    assert.equal(artifacts!.flatMap(({ parts }) => parts).length, FACTS);
  });
}
