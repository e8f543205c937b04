import type { TaskPlan } from '../../simulator/client.ts';
import type { Fault } from '../../simulator/faults.ts';
import { type Scenario, SETTINGS } from '../../simulator/scenario.ts';
import type { AgentScript } from '../../support/agents/scripted-agent.ts';

/** The recorded task of one kind: what its client and agents do, and what happens to the cluster. */
const script = (tokens: number, end: AgentScript['end'] = 'done', more: Partial<AgentScript> = {}): AgentScript => ({
  tokens,
  everyMs: 60,
  end,
  ...more,
});

const plan = (name: string, turns: TaskPlan['turns'], more: Partial<TaskPlan> = {}): TaskPlan => ({
  name,
  startAt: 1_500,
  profile: 'caipe',
  turns,
  webhook: undefined,
  cancelAfterMs: undefined,
  viewers: [{ afterMs: 0, leavesAfter: [], pauseMs: 100 }],
  ...more,
});

const one = (agent: string, own: AgentScript): TaskPlan['turns'][number] => ({ agents: [agent], scripts: { [agent]: own } });
const both: TaskPlan['turns'][number] = {
  agents: ['writer', 'reviewer'],
  scripts: { writer: script(12), reviewer: script(8, 'done', { everyMs: 90 }) },
};

const TASKS: [TaskPlan, Fault[]][] = [
  [plan('plain-answer', [one('writer', script(20))]), []],
  [plan('plain-answer-transparent', [one('writer', script(20))], { profile: 'transparent' }), []],
  // Calls contain everything that their work needs, including the state that an agent left when it asked a question.
  [plan('calls-with-content', [one('writer', script(3, 'asks')), one('writer', script(3))]), []],
  [plan('cancel', [one('writer', script(60))], { cancelAfterMs: 1_200 }), []],
  [plan('question-and-second-turn', [one('writer', script(6, 'asks')), one('writer', script(10))]), []],
  [plan('two-agents-at-once', [both]), []],
  [plan('failure', [one('writer', script(8, 'fails'))]), []],
  [plan('second-attempt', [one('writer', script(8, 'fails once'))]), []],
  [plan('split-surrogate-pairs', [one('writer', script(24, 'done', { splitsPairs: true }))]), []],
  [plan('open-artifacts', [one('writer', script(5, 'done', { openArtifacts: { count: 3, descriptionChars: 40 } }))]), []],
  [
    plan('takeover', [one('writer', script(80))]),
    // Both relays, so that the one that owns the task is among them when they are killed in mid-stream.
    [
      { at: 3_000, kind: 'kill', slot: 'relay-1', forMs: 4_000 },
      { at: 11_000, kind: 'kill', slot: 'relay-2', forMs: 4_000 },
    ],
  ],
  [
    plan('agent-killed', [one('writer', script(80))]),
    [
      { at: 3_000, kind: 'kill', slot: 'agent.writer-1', forMs: 1_000 },
      { at: 3_000, kind: 'kill', slot: 'agent.writer-2', forMs: 1_000 },
    ],
  ],
];

export const GOLDEN: readonly { name: string; scenario: Scenario }[] = TASKS.map(([task, faults]) => ({
  name: task.name,
  scenario: { seed: 1, log: 'memory' as const, settings: SETTINGS, tasks: [task], faults },
}));
