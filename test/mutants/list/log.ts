import type { Mutant } from '../mutant.ts';

const FOLLOW = 'packages/log/src/follow.ts';
const FOLLOW_TEST = 'packages/log/src/follow.test.ts';
const WRITER = 'packages/log/src/input-writer.ts';
const WRITER_TEST = 'packages/log/src/input-writer.test.ts';
const LEASES_TEST = 'packages/log/src/shard-leases/shard-leases.test.ts';
const QUEUE_TEST = 'packages/log/src/work-queue.test.ts';
const SLOTS_TEST = 'packages/log/src/fair-slots.test.ts';

export const LOG_MUTANTS: readonly Mutant[] = [
  {
    name: 'a follower does not notice a missed record',
    edits: [{ file: FOLLOW, from: 'live.last > this.#seen && !', to: 'live.last > this.#seen && this.#seen === 0 && !' }],
    tests: [FOLLOW_TEST],
  },
  {
    name: 'a follower forgets the records that overflow its buffer',
    edits: [{ file: FOLLOW, from: "this.#reread('overflow');", to: "this.#onReread('overflow');" }],
    tests: [FOLLOW_TEST],
  },
  {
    name: 'a follower trusts a push of tails that was lost',
    edits: [
      {
        file: FOLLOW,
        from: '() => {\n        this.#isPushed = false;\n        this.#wake?.();\n      },',
        to: '() => {},',
      },
    ],
    tests: [FOLLOW_TEST],
  },
  {
    name: 'a follower does not check its tail after a reconnect',
    edits: [{ file: FOLLOW, from: '#reconnected(): void {\n    this.#checkTail = true;', to: '#reconnected(): void {' }],
    tests: [FOLLOW_TEST],
  },
  {
    name: 'a record in the place of a lost one counts as the same',
    edits: [
      {
        file: FOLLOW,
        from: 'return id !== undefined && known !== undefined && id !== known;',
        to: "return id === '' && known === '';",
      },
    ],
    tests: [FOLLOW_TEST],
  },
  {
    name: 'the sealed records of a burst leave in reverse order',
    edits: [{ file: WRITER, from: 'this.#sealed.shift() ?? this.#open', to: 'this.#sealed.pop() ?? this.#open' }],
    tests: [WRITER_TEST],
  },
  {
    name: 'two runs of one attempt write into one text',
    edits: [
      {
        file: WRITER,
        from: 'if (duplicate && !(await this.#isStoredAt(seq, record))) throw new Superseded();',
        to: 'void duplicate;',
      },
    ],
    tests: [WRITER_TEST],
  },
  {
    name: 'a flush does not wait for the last input',
    edits: [
      { file: WRITER, from: 'this.#flushing[0].upTo <= this.#storedN)', to: 'this.#flushing[0].upTo <= this.#storedN + 1)' },
    ],
    tests: [WRITER_TEST],
  },
  {
    name: 'records of two turns have the same id',
    edits: [
      {
        file: WRITER,
        from: 'const { turn, item = 0, attempt } = producer;',
        to: 'const { item = 0, attempt } = producer;\n    const turn = 1;',
      },
    ],
    tests: [WRITER_TEST],
  },
  {
    name: 'a lease is released before its shard has stopped',
    edits: [
      {
        file: 'packages/log/src/shard-leases/shard-leases.ts',
        from: 'const stopped = tenure && ((await stopShard(shard)) ?? tenure.progress);',
        to: 'void stopShard(shard);\n    const stopped = tenure?.progress;',
      },
    ],
    tests: [LEASES_TEST],
  },
  {
    name: 'a shard that failed starts again although its lease is lost',
    edits: [
      {
        file: 'packages/log/src/shard-leases/shard-leases.ts',
        from: "if (lease?.owner === instance) startShard(shard, progress, 'restarted');",
        to: "if (lease !== undefined) startShard(shard, progress, 'restarted');",
      },
    ],
    tests: [LEASES_TEST],
  },
  {
    name: 'a process that does not see its own heartbeat judges others',
    edits: [
      {
        file: 'packages/log/src/shard-leases/lease-view.ts',
        from: 'return this.#isRead && nowMs - this.#ownSeenAtMs <= this.#leaseMs;',
        to: 'return this.#isRead;',
      },
    ],
    tests: ['packages/log/src/shard-leases/lease-view.test.ts', LEASES_TEST],
  },
  {
    name: 'fair shares of shards are rounded down',
    edits: [
      {
        file: 'packages/log/src/shard-leases/fair-share.ts',
        from: 'const shareMax = Math.ceil(',
        to: 'const shareMax = Math.floor(',
      },
    ],
    tests: ['packages/log/src/shard-leases/fair-share.test.ts'],
  },
  {
    name: 'a process that stops keeps its part of the fair share',
    edits: [
      {
        file: 'packages/log/src/shard-leases/fair-share.ts',
        from: 'leases.live.size - leases.leaving',
        to: 'leases.live.size',
      },
    ],
    tests: ['packages/log/src/shard-leases/fair-share.test.ts'],
  },
  {
    name: 'a worker trusts the record in an item that was delivered before',
    edits: [
      {
        file: 'packages/log/src/work-queue.ts',
        from: 'if (newest === undefined || deliveries > 1) return {};',
        to: 'if (newest === undefined) return {};',
      },
    ],
    tests: [QUEUE_TEST],
  },
  {
    name: 'an item gets one attempt too few',
    edits: [
      {
        file: 'packages/log/src/work-queue.ts',
        from: "if (attempts <= attemptsMax) return 'run';",
        to: "if (attempts < attemptsMax) return 'run';",
      },
    ],
    tests: [QUEUE_TEST],
  },
  {
    name: 'a free slot goes to the tenant that runs the most',
    edits: [{ file: 'packages/log/src/fair-slots.ts', from: 'return more < 0 ||', to: 'return more > 0 ||' }],
    tests: [SLOTS_TEST],
  },
  {
    name: 'a slot that is given back twice counts twice',
    edits: [{ file: 'packages/log/src/fair-slots.ts', from: 'if (released) return;', to: '' }],
    tests: [SLOTS_TEST],
  },
  {
    name: 'facts that were copied forward twice are read twice',
    edits: [{ file: 'packages/log/src/read-task.ts', from: "if (copied.last) phase = 'plain records';", to: '' }],
    tests: ['packages/log/src/read-task.test.ts'],
  },
  {
    name: 'the silence of one instance hides a live one',
    edits: [
      {
        file: 'packages/log/src/live-agents.ts',
        from: 'return a.isLive === b.isLive ? a.heartbeat > b.heartbeat : a.isLive;',
        to: 'return a.heartbeat > b.heartbeat;',
      },
    ],
    tests: ['packages/log/src/live-agents.test.ts'],
  },
  {
    name: 'a page of ended tasks lacks one of them',
    edits: [
      {
        file: 'packages/log/src/task-lists.ts',
        from: 'const page = ended.slice(0, -kept);',
        to: 'const page = ended.slice(1, -kept);',
      },
    ],
    // Lists are written by relays and read by servers.
    tests: ['services/relay/src/task-lists.test.ts', 'packages/a2a-server/src/task-lists.test.ts'],
  },
  {
    name: 'the shown place in a queue moves back',
    edits: [
      {
        file: 'packages/log/src/queue-waits.ts',
        from: 'shown - ahead >= Math.max(',
        to: 'Math.abs(shown - ahead) >= Math.max(',
      },
    ],
    tests: ['packages/log/src/queue-waits.test.ts'],
  },
  {
    name: 'a work item is run with the log of the previous turn',
    edits: [
      {
        file: 'packages/log/src/read-task.ts',
        from: 'if (newest !== undefined && newest.record.aggregate.turn >= turn) return newest;',
        to: 'if (newest !== undefined) return newest;',
      },
    ],
    tests: ['packages/log/src/read-task.test.ts'],
  },
  {
    name: 'a slot that is released twice counts twice',
    edits: [
      {
        file: 'packages/log/src/semaphore.ts',
        from: 'if (isReleased) return;\n      isReleased = true;\n      const [next]',
        to: 'isReleased = true;\n      const [next]',
      },
    ],
    tests: ['packages/log/src/semaphore.test.ts'],
  },
  {
    name: 'a slot is given to a caller that no longer waits for it',
    edits: [{ file: 'packages/log/src/semaphore.ts', from: 'this.#waiting.delete(grant);\n', to: '' }],
    tests: ['packages/log/src/semaphore.test.ts'],
  },
  {
    name: 'an idle caller saves up requests without limit',
    edits: [
      {
        file: 'packages/log/src/token-bucket.ts',
        from: 'this.#tokens = Math.min(burst, this.#tokens + ((nowMs - this.#atMs) * perSecond) / 1_000);',
        to: 'this.#tokens += burst * 0 + ((nowMs - this.#atMs) * perSecond) / 1_000;',
      },
    ],
    tests: ['packages/log/src/token-bucket.test.ts'],
  },
];
