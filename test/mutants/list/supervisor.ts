import type { Mutant } from '../mutant.ts';

const SUPERVISE = 'services/supervisor/src/supervise.ts';
const SUPERVISE_TEST = 'services/supervisor/src/supervise.test.ts';
const ITEMS = 'services/supervisor/src/call-items.ts';
const ITEMS_TEST = 'services/supervisor/src/call-items.test.ts';
const GONE = 'services/supervisor/src/gone-agents.ts';
const GONE_TEST = 'services/supervisor/src/gone-agents.test.ts';
const VIEW = 'services/supervisor/src/turn-view.ts';
const VIEW_TEST = 'services/supervisor/src/turn-view.test.ts';
const OUTCOME = 'services/supervisor/src/turn-outcome.ts';
const OUTCOME_TEST = 'services/supervisor/src/turn-outcome.test.ts';

export const SUPERVISOR_MUTANTS: readonly Mutant[] = [
  {
    name: 'a supervisor that takes over queues running calls again',
    edits: [
      {
        file: ITEMS,
        from: 'if (begun !== undefined || !(await this.#isQueued(call))) await this.#request(call);',
        to: 'await this.#request(call);',
      },
    ],
    tests: [ITEMS_TEST],
  },
  {
    name: 'a call that a relay holds is queued twice',
    edits: [
      {
        file: ITEMS,
        from: 'if (workingCall(started) !== undefined || view.ended(name) !== undefined) continue;',
        to: 'if (view.ended(name) !== undefined) continue;',
      },
    ],
    tests: [ITEMS_TEST],
  },
  {
    name: 'time without the log counts as silence of an agent',
    edits: [{ file: GONE, from: ' || isAway || wasSuspended', to: ' || wasSuspended' }],
    tests: [GONE_TEST],
  },
  {
    name: 'time in which the supervisor was suspended counts as silence of an agent',
    edits: [{ file: GONE, from: ' || isAway || wasSuspended', to: ' || isAway' }],
    tests: [GONE_TEST],
  },
  {
    name: 'inputs that were removed after they were read count as lost',
    edits: [
      {
        file: 'services/supervisor/src/lost-inputs.ts',
        from: 'if (lastSeq === undefined || foldedIn(view, producer) >= nextN - 1) continue;',
        to: 'if (lastSeq === undefined || foldedIn(view, producer) >= nextN) continue;',
      },
    ],
    tests: ['services/supervisor/src/lost-inputs.test.ts'],
  },
  {
    name: 'the item of an agent that has just written counts as lost',
    edits: [
      {
        file: 'services/supervisor/src/lost-items.ts',
        from: 'if (before.get(call) !== written.get(call)) continue;',
        to: 'void before;',
      },
    ],
    tests: ['services/supervisor/src/lost-items.test.ts'],
  },
  {
    name: 'a superseded supervisor goes on',
    edits: [{ file: SUPERVISE, from: 'requireNewest(record.record.aggregate, producer);', to: '' }],
    tests: [SUPERVISE_TEST],
  },
  {
    name: 'a supervisor leaves a task whose agent waits for credentials',
    edits: [
      {
        file: SUPERVISE,
        from: '(isInterrupted(aggregate.state) && view.waitsForClient)',
        to: 'isInterrupted(aggregate.state)',
      },
    ],
    tests: [SUPERVISE_TEST],
  },
  {
    name: 'answers to two questions continue the same call',
    edits: [{ file: VIEW, from: 'call: continuingCallId(turn, index) });', to: 'call: continuingCallId(turn, 0) });' }],
    tests: [VIEW_TEST, 'services/supervisor/src/model-conversation.test.ts'],
  },
  {
    name: "the supervisor's own text comes before that of the agents",
    edits: [
      {
        file: VIEW,
        from: 'return this.#textBy(producer => producer !== SUPERVISOR) + this.supervisorText();',
        to: 'return this.supervisorText() + this.#textBy(producer => producer !== SUPERVISOR);',
      },
    ],
    tests: [VIEW_TEST, SUPERVISE_TEST],
  },
  {
    name: 'a question of an earlier turn counts as one of this turn',
    edits: [
      {
        file: VIEW,
        from: 'return isInterrupted(ended.state) ? { call, agent, resume, question } : undefined;',
        to: 'return { call, agent, resume, question };',
      },
    ],
    tests: [VIEW_TEST],
  },
  {
    name: 'a task of which every agent failed is completed',
    edits: [{ file: OUTCOME, from: 'if (failed.length < ends.length)', to: 'if (failed.length <= ends.length)' }],
    tests: [OUTCOME_TEST],
  },
  {
    name: 'a complete result is sent again after a takeover',
    edits: [{ file: OUTCOME, from: 'if (view.isShown(lane) && !view.isOpen(lane)) return;', to: '' }],
    tests: [OUTCOME_TEST],
  },
  {
    name: 'a long result shows only its last part',
    edits: [{ file: OUTCOME, from: 'append: from > 0,', to: 'append: false,' }],
    tests: [OUTCOME_TEST],
  },
  {
    name: 'the text of a step that broke off stays',
    edits: [
      {
        file: 'services/supervisor/src/step-lanes.ts',
        from: 'for (const kind of this.#open) this.#openLane(kind);',
        to: '',
      },
    ],
    tests: ['services/supervisor/src/step-lanes.test.ts'],
  },
  {
    name: 'a turn ends with the first of its agents',
    edits: [
      {
        file: 'services/supervisor/src/planned-turn.ts',
        from: 'if (ends.length > 0 && ends.length === calls.length) await this.#finish();',
        to: 'if (ends.length > 0 && calls.length > 0) await this.#finish();',
      },
    ],
    tests: [SUPERVISE_TEST],
  },
  {
    name: 'a notice that cannot be stored ends the process with all its turns',
    edits: [
      {
        file: 'services/supervisor/src/call-waits.ts',
        from: 'show: ahead => this.#orFail(() => this.#show(call, agent, ahead)),',
        to: 'show: ahead => this.#show(call, agent, ahead),',
      },
    ],
    tests: ['services/supervisor/src/supervise.test.ts'],
  },
];
