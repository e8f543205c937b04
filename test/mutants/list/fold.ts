import type { Mutant } from '../mutant.ts';

const DEDUPLICATOR = 'packages/fold/src/ordinal-deduplicator.ts';
const QUEUE = 'packages/fold/src/append-queue.ts';
const INPUTS = 'packages/fold/src/task-inputs.ts';
const INPUTS_TEST = 'packages/fold/src/task-inputs.test.ts';
const QUEUE_TEST = 'packages/fold/src/append-queue.test.ts';

export const FOLD_MUTANTS: readonly Mutant[] = [
  {
    name: 'one lost input of a producer is not noticed',
    edits: [
      {
        file: DEDUPLICATOR,
        from: 'return nextN !== undefined && record.n > nextN;',
        to: 'return nextN !== undefined && record.n > nextN + 1;',
      },
    ],
    tests: [INPUTS_TEST],
  },
  {
    name: 'a repeated record lowers the ordinal that is known',
    edits: [
      {
        file: DEDUPLICATOR,
        from: 'const nextN = Math.max(last + 1, seen === undefined || isLaterRun(from, seen) ? 1 : (seen.nextN ?? 1));',
        to: 'const nextN = last + 1;',
      },
    ],
    tests: [INPUTS_TEST],
  },
  {
    name: 'text that the previous owner stored is folded again',
    edits: [
      {
        file: DEDUPLICATOR,
        from: 'Math.max(0, lastSeenOrdinal - firstN + 1, folded - firstN + 1)',
        to: 'Math.max(0, lastSeenOrdinal - firstN + 1)',
      },
    ],
    tests: [INPUTS_TEST],
  },
  {
    name: 'the stored half of a token is folded again',
    edits: [
      { file: DEDUPLICATOR, from: 'units: isSplitHere ? (lane.splitOffset ?? 0) : 0 };', to: 'units: isSplitHere ? 0 : 0 };' },
    ],
    tests: [INPUTS_TEST],
  },
  {
    name: 'a record without a fact is forgotten before its ordinal is stored',
    edits: [{ file: DEDUPLICATOR, from: 'this.#oldestUnstoredSeq ??= seq;', to: '' }],
    tests: [INPUTS_TEST],
  },
  {
    name: 'text of two attempts becomes one chunk',
    edits: [{ file: QUEUE, from: ' && a.from.attempt === b.from.attempt', to: '' }],
    tests: [QUEUE_TEST],
  },
  {
    name: 'a lane that a queued run closes is not marked as folded',
    edits: [{ file: QUEUE, from: 'this.#commands.at(-1)!.mark = mark;', to: 'void mark;' }],
    tests: [QUEUE_TEST],
  },
  {
    name: 'a copy-forward is stored together with other commands',
    edits: [
      {
        file: QUEUE,
        from: "if (count > 0 && (size + more > unitsMax || command.kind === 'copy-forward')) break;",
        to: 'if (count > 0 && size + more > unitsMax) break;',
      },
    ],
    tests: [QUEUE_TEST],
  },
  {
    name: 'the head of the queue counts as its oldest record',
    edits: [{ file: QUEUE, from: 'return this.#oldest[0]?.firstSeq;', to: 'return this.#commands[0]?.firstSeq;' }],
    tests: [QUEUE_TEST],
  },
  {
    name: 'a notice overtakes the text before it',
    edits: [{ file: INPUTS, from: 'this.#queueRuns(text.flushFor(record.from, input, now()));', to: '' }],
    tests: [INPUTS_TEST],
  },
  {
    name: 'held text counts as folded',
    edits: [{ file: INPUTS, from: '(this.oldestSeq ?? this.#lastSeq + 1) - 1);\n    return', to: 'this.#lastSeq);\n    return' }],
    tests: [INPUTS_TEST],
  },
  {
    name: 'a message that expired begins its task again',
    edits: [
      {
        file: INPUTS,
        from: "const isLate = this.#options.isExpired && input.kind === 'message';",
        to: 'const isLate = false;',
      },
    ],
    tests: [INPUTS_TEST],
  },
  {
    name: 'half a character of a dead attempt is held forever',
    edits: [
      {
        file: 'packages/fold/src/coalesced-text.ts',
        from: 'if (isEarlierAttempt(own, from)) chunks.push(...close(this.#coalescer, attemptLaneKey(own, lane), now));',
        to: 'void own, lane;',
      },
    ],
    tests: [INPUTS_TEST],
  },
];
