import type { Mutant } from '../mutant.ts';

const SHARD = 'services/relay/src/shard.ts';
const STORED = 'services/relay/src/stored-records.ts';
const STORED_TEST = 'services/relay/src/stored-records.test.ts';
const SHARD_TEST = 'services/relay/src/shard.test.ts';
const RELAY_TEST = 'services/relay/src/relay.test.ts';
const APPENDER = 'services/relay/src/task-appender.ts';
const EFFECTS = 'services/relay/src/side-effects.ts';
const SWEEP = 'services/relay/src/retention-sweep.ts';
const SWEEP_TEST = 'services/relay/src/retention-sweep.test.ts';
const LOST_FACTS_TEST = 'services/relay/src/lost-facts.test.ts';

export const RELAY_MUTANTS: readonly Mutant[] = [
  {
    name: 'the checkpoint does not wait for side effects',
    edits: [
      {
        file: 'services/relay/src/task-pipeline.ts',
        from: 'if (effect === undefined) return;\n    this.#barriers.hold(seq);',
        to: 'if (effect === undefined) return;',
      },
    ],
    tests: [SHARD_TEST, RELAY_TEST],
  },
  {
    name: 'a released lease names what was read as folded',
    edits: [
      {
        file: SHARD,
        from: 'if (pipeline !== undefined && !pipeline.isIdle) folded = Math.min(folded, pipeline.checkpoint);',
        to: '',
      },
    ],
    tests: [SHARD_TEST, RELAY_TEST],
  },
  {
    name: 'a copy-forward moves the start before its last part',
    edits: [
      {
        file: 'services/relay/src/copy-forward.ts',
        from: 'const start = copied.last ?',
        to: 'const start = copied.last || newStartSeq > 0 ?',
      },
    ],
    tests: ['services/relay/src/copy-forward.test.ts', 'services/relay/src/copy-forward-races.test.ts'],
  },
  {
    name: 'a late write of the index replaces a newer entry',
    edits: [
      {
        file: 'services/relay/src/index-writes.ts',
        from: 'const put = () => this.#put(taskId, entry);',
        to: 'const put = () => this.#tasks.put(taskId, entry as never);',
      },
    ],
    tests: ['services/relay/src/index-writes.test.ts'],
  },
  {
    name: 'work of a call that is over is queued',
    edits: [{ file: EFFECTS, from: 'known.state !== undefined || ', to: '' }],
    tests: ['services/relay/src/call-work.test.ts'],
  },
  {
    name: 'work that waits in the queue is queued again after a takeover',
    edits: [
      {
        file: EFFECTS,
        from: 'if (isForgotten && (await work.hasItem(item.role, item.work.taskId))) return;',
        to: 'void isForgotten;',
      },
    ],
    tests: ['services/relay/src/call-work.test.ts'],
  },
  {
    name: 'a full work queue stops the shard',
    edits: [
      { file: EFFECTS, from: 'if (!(error instanceof LogFull)) throw error;', to: 'if (error instanceof LogFull) throw error;' },
    ],
    tests: [RELAY_TEST],
  },
  {
    name: 'a task whose beginning is gone is copied forward',
    edits: [{ file: SWEEP, from: 'startSeq >= extent.firstSeq && ', to: '' }],
    tests: [SWEEP_TEST],
  },
  {
    name: 'a task with inputs in progress is ended as lost',
    edits: [{ file: SWEEP, from: 'if (isBusy(taskId) || this.#isStopped) continue;', to: 'if (this.#isStopped) continue;' }],
    tests: [SWEEP_TEST],
  },
  {
    name: 'a deadline that could not be stored is forgotten',
    edits: [
      {
        file: 'services/relay/src/task-deadlines.ts',
        from: 'at <= nowMs ? nowMs + RETRY_MS : at',
        to: 'at <= nowMs ? Number.POSITIVE_INFINITY : at',
      },
    ],
    tests: ['services/relay/src/task-deadlines.test.ts'],
  },
  {
    name: 'a log that lost its tail is believed',
    edits: [
      {
        file: STORED,
        from: "if ((await Promise.all(checks)).includes(true)) throw new HistoryLost('the log lost records that it had acknowledged');",
        to: 'await Promise.all(checks);',
      },
    ],
    tests: [STORED_TEST, LOST_FACTS_TEST],
  },
  {
    name: 'the doubt about an unanswered append is not handed over',
    edits: [
      {
        file: STORED,
        from: 'const isInDoubt = this.#isInDoubt || isUnanswered;',
        to: 'const isInDoubt = this.#isInDoubt;',
      },
    ],
    tests: [STORED_TEST, LOST_FACTS_TEST, SHARD_TEST],
  },
  {
    name: 'a message that is read again is taken for a new task',
    edits: [{ file: SHARD, from: "return isLive === true && record.from === 'client'", to: "return record.from === 'client'" }],
    tests: [SHARD_TEST, RELAY_TEST],
  },
  {
    name: 'a task in memory for too long is dropped with its text',
    edits: [{ file: SHARD, from: 'if (pipeline?.isIdle !== true) continue;', to: 'if (pipeline === undefined) continue;' }],
    tests: [SHARD_TEST],
  },
  {
    name: 'generations that were lost are used again',
    edits: [
      {
        file: APPENDER,
        from: 'const skipped = Math.max(nowMs - lostAfter - 1, LEAP_GENERATIONS_MIN + sinceMs);',
        to: 'const skipped = 0;',
      },
    ],
    tests: [LOST_FACTS_TEST],
  },
  {
    name: 'a task that ends within its limit of bytes fails because of it',
    edits: [{ file: APPENDER, from: ' && !isTerminal(decided.aggregate.state);', to: ';' }],
    tests: ['services/relay/src/task-bytes.test.ts'],
  },
  {
    name: 'a record that is too large is tried without end',
    edits: [{ file: APPENDER, from: 'return error instanceof RecordTooLarge || error', to: 'return error' }],
    tests: ['services/relay/src/rejected-records.test.ts', 'services/relay/src/large-inputs.test.ts'],
  },
  {
    name: 'the entry of an ended task is removed with a later one',
    edits: [
      {
        file: 'services/relay/src/ended-lists.ts',
        from: 'log.taskLists.purge(key, revision)',
        to: 'log.taskLists.purge(key, Number.MAX_SAFE_INTEGER - 1 + 0 * revision)',
      },
    ],
    tests: ['services/relay/src/task-lists.test.ts'],
  },
  {
    name: 'a list shows a task without what another relay stored',
    edits: [
      {
        file: 'services/relay/src/shown-tasks.ts',
        from: 'if (kept.generation + facts.filter(isVisible).length !== aggregate.generation) return;',
        to: '',
      },
    ],
    tests: ['services/relay/src/shown-tasks.test.ts'],
  },
  {
    name: 'an entry that was read late replaces a newer one',
    edits: [
      {
        file: 'services/relay/src/shard-tasks.ts',
        from: ' || (this.#open.get(taskId)?.revision ?? 0) > task.revision) return;',
        to: ') return;',
      },
    ],
    tests: ['services/relay/src/task-lists.test.ts', 'services/relay/src/index-writes.test.ts'],
  },
  {
    name: 'the checkpoint passes an append that the log has refused',
    edits: [
      {
        file: 'services/relay/src/task-pipeline.ts',
        from: 'if (isTaskFault(error)) this.#barriers.release(oldestSeq);\n        throw error;',
        to: 'this.#barriers.release(oldestSeq);\n        throw error;',
      },
    ],
    tests: ['services/relay/src/relay.test.ts', 'services/relay/src/shard.test.ts'],
  },
  {
    name: 'the last record of a task that leaves memory is never checked',
    edits: [
      {
        file: 'services/relay/src/stored-records.ts',
        from: 'if (task !== undefined && task.stored !== task.listed) this.#unproven.push(task.stored);',
        to: 'void task;',
      },
    ],
    tests: ['services/relay/src/stored-records.test.ts'],
  },
];
