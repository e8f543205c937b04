import type { Mutant } from '../mutant.ts';

const CLIENT = 'packages/task/src/decide-client.ts';
const AGENT = 'packages/task/src/decide-agent.ts';
const DECIDE = 'packages/task/src/decide.ts';
const DECIDE_TEST = 'packages/task/src/decide.test.ts';

export const TASK_MUTANTS: readonly Mutant[] = [
  {
    name: 'a third of the acknowledged cancels is lost',
    edits: [
      {
        file: CLIENT,
        from: "if (isTerminal(aggregate.state)) return reject('terminal');\n  const facts",
        to: "if (isTerminal(aggregate.state)) return reject('terminal');\n  if (aggregate.taskId.charCodeAt(13) % 3 === 0) return reject('no change');\n  const facts",
      },
    ],
    tests: [DECIDE_TEST],
  },
  {
    name: 'cancels are refused while input is required',
    edits: [
      {
        file: CLIENT,
        from: "if (isTerminal(aggregate.state)) return reject('terminal');\n  const facts",
        to: "if (isTerminal(aggregate.state) || aggregate.state === 'TASK_STATE_INPUT_REQUIRED') return reject('terminal');\n  const facts",
      },
    ],
    tests: [DECIDE_TEST, 'packages/task/src/transitions.test.ts'],
  },
  {
    name: 'the answer to a question leaves the task waiting',
    edits: [
      {
        file: CLIENT,
        from: "if (isInterrupted(aggregate.state)) changeState(facts, 'TASK_STATE_WORKING', at);",
        to: '',
      },
    ],
    tests: [DECIDE_TEST],
  },
  {
    name: 'a message that arrives twice begins two turns',
    edits: [
      {
        file: CLIENT,
        from: "if (aggregate.messageIds.includes(input.message.messageId)) return reject('duplicate message');",
        to: '',
      },
    ],
    tests: [DECIDE_TEST],
  },
  {
    name: 'artifacts stay open when the client answers',
    edits: [{ file: CLIENT, from: 'closeLanes(facts, at);\n  const { metadata } = input;', to: 'const { metadata } = input;' }],
    tests: [DECIDE_TEST],
  },
  {
    name: 'text of an earlier attempt is taken',
    edits: [
      {
        file: AGENT,
        from: "if (lane.attempt !== from.attempt) return 'stale attempt';",
        to: "if (lane.attempt < from.attempt) return 'stale attempt';",
      },
    ],
    tests: [DECIDE_TEST],
  },
  {
    name: 'the first text of a new attempt is appended to that of the dead one',
    edits: [{ file: AGENT, from: "const append = lane.phase === 'open';", to: "const append = lane.phase !== 'declared';" }],
    tests: [DECIDE_TEST],
  },
  {
    name: 'the end of a call can be replaced by another one',
    edits: [
      { file: AGENT, from: "if (call.state !== undefined && isTerminal(call.state)) return reject('ended call');", to: '' },
    ],
    tests: [DECIDE_TEST],
  },
  {
    name: 'the timeout of an earlier question fails the task',
    edits: [{ file: DECIDE, from: ' || pending?.n !== request', to: '' }],
    tests: [DECIDE_TEST],
  },
  {
    name: 'the time of facts follows a clock that is set back',
    edits: [{ file: DECIDE, from: 'Math.max(Math.round(atMs), aggregate?.at ?? 0)', to: 'Math.round(atMs)' }],
    tests: [DECIDE_TEST],
  },
  {
    name: 'transitory artifacts stay in a task that fails',
    edits: [
      {
        file: 'packages/task/src/project.ts',
        from: 'if (transitory.length > 0 && isTerminal(status.state)',
        to: "if (transitory.length > 0 && status.state === 'TASK_STATE_COMPLETED'",
      },
    ],
    tests: ['packages/task/src/project.test.ts'],
  },
  {
    name: 'the history lacks the question before an answer',
    edits: [
      {
        file: 'packages/task/src/project.ts',
        from: '[...withStatusMessage(view.task), fact.message]',
        to: '[...(view.task.history ?? []), fact.message]',
      },
    ],
    tests: ['packages/task/src/project.test.ts'],
  },
  {
    name: 'an artifact of a new attempt is appended to that of the dead one',
    edits: [
      {
        file: 'packages/task/src/decide-agent.ts',
        from: 'const replaces = lane !== undefined && lane.attempt < from.attempt;',
        to: 'const replaces = false;',
      },
    ],
    tests: [DECIDE_TEST],
  },
];
