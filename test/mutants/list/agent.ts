import type { Mutant } from '../mutant.ts';

const ATTEMPT = 'packages/agent/src/run-attempt.ts';
const INPUTS = 'packages/agent/src/turn-inputs.ts';
const WATCH = 'packages/agent/src/task-watch.ts';
const TURN_TEST = 'packages/agent/src/run-turn.test.ts';
const LIFE_TEST = 'packages/agent/src/run-turn-life.test.ts';
const SERVE_TEST = 'packages/agent/src/serve-agent.test.ts';
const SHOWN_END_TEST = 'packages/agent/src/shown-end.test.ts';

export const AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'a work item is done before the log shows its end',
    edits: [
      { file: 'packages/agent/src/serve-agent.ts', from: 'await requireShownEnd(log, job, waiting);', to: 'void waiting;' },
    ],
    tests: [SERVE_TEST, SHOWN_END_TEST],
  },
  {
    name: 'the first output of a turn counts as its end',
    edits: [
      {
        file: 'packages/agent/src/shown-end.ts',
        from: 'foldedOrdinal(aggregate, producer) >= lastN',
        to: 'foldedOrdinal(aggregate, producer) > 0',
      },
    ],
    tests: [SHOWN_END_TEST],
  },
  {
    name: 'a turn ends before its last inputs are stored',
    edits: [{ file: ATTEMPT, from: 'await writer.flush();\n  return { ...outcome', to: 'return { ...outcome' }],
    tests: [TURN_TEST, SERVE_TEST],
  },
  {
    name: 'a second run of the same attempt begins',
    edits: [
      {
        file: 'packages/agent/src/run-turn.ts',
        from: 'if (hasWritten(newest.record.aggregate, { id: work.call?.id ?? ROOT_AGENT, item, attempt })) throw new Superseded();',
        to: 'void hasWritten;',
      },
    ],
    tests: [LIFE_TEST, TURN_TEST],
  },
  {
    name: 'an agent receives no cancel',
    edits: [
      {
        file: WATCH,
        from: 'if (isTerminal(aggregate.state)) return TASK_ENDED;',
        to: "if (isTerminal(aggregate.state) && aggregate.state !== 'TASK_STATE_CANCELED') return TASK_ENDED;",
      },
    ],
    tests: [LIFE_TEST],
  },
  {
    name: 'an agent goes on after the client has sent another message',
    edits: [{ file: WATCH, from: "if (aggregate.turn > work.turn) return 'later turn';", to: '' }],
    tests: [LIFE_TEST, TURN_TEST],
  },
  {
    name: 'a tool call stays open when its turn ends',
    edits: [
      { file: INPUTS, from: 'for (const callId of this.#tools.keys()) this.#endTool(callId, outcome);', to: 'void outcome;' },
    ],
    tests: [TURN_TEST],
  },
  {
    name: 'the text of a dead attempt stays beside that of the next one',
    edits: [{ file: INPUTS, from: 'this.#text.streams.reopen(this.#options.prior.openLanes);', to: '' }],
    tests: [TURN_TEST, LIFE_TEST],
  },
  {
    name: 'an attempt that fails at once empties the text that clients have',
    edits: [{ file: INPUTS, from: 'if (!failed) this.#replacePrior();', to: 'this.#replacePrior();' }],
    tests: [TURN_TEST, LIFE_TEST],
  },
  {
    name: 'a repetition of streamed text is shown again',
    edits: [
      {
        file: 'packages/agent/src/answer-deduplicator.ts',
        from: 'for (const artifact of this.#repeating) artifact.repeats += text;',
        to: '',
      },
    ],
    tests: ['packages/agent/src/answer-deduplicator.test.ts'],
  },
  {
    name: 'a call that failed is repeated once too little',
    edits: [{ file: ATTEMPT, from: 'failures <= retries;', to: 'failures < retries;' }],
    tests: [SERVE_TEST],
  },
  {
    name: 'a turn that a shutdown stops counts as ended',
    edits: [{ file: ATTEMPT, from: "if (deps.signal.aborted) throw new Requeued('shutdown');", to: '' }],
    tests: [SERVE_TEST, LIFE_TEST],
  },
  {
    name: 'the cancel of a remote run is tried only once',
    edits: [
      {
        file: 'packages/agent/src/remote-run-cancels.ts',
        from: 'if (this.#closed.signal.aborted || performance.now() + waitMs >= endsAtMs) throw error;',
        to: 'if (endsAtMs > 0) throw error;',
      },
    ],
    tests: ['packages/agent/src/remote-run-cancels.test.ts'],
  },
  {
    name: 'an agent that stops removes the entry of its siblings',
    edits: [{ file: 'packages/agent/src/register-agent.ts', from: '{name}.$'.concat('{randomUUID()}'), to: '{name}' }],
    tests: ['packages/agent/src/register-agent.test.ts'],
  },
  {
    name: 'a tool call that has ended ends again in the next attempt',
    edits: [
      { file: 'packages/agent/src/prior-attempts.ts', from: "else openTools.delete(lane.replace(/\\/end$/, ''));", to: '' },
    ],
    tests: [TURN_TEST, LIFE_TEST],
  },
  {
    name: 'a work item is done one input before the log shows its end',
    edits: [
      {
        file: 'packages/agent/src/shown-end.ts',
        from: 'foldedOrdinal(aggregate, producer) >= lastN;',
        to: 'foldedOrdinal(aggregate, producer) >= lastN - 1;',
      },
    ],
    tests: ['packages/agent/src/shown-end.test.ts'],
  },
];
