import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentInput } from '@hopline/events';
import { CAIPE } from '@hopline/profiles';
import { AgentCalls } from './agent-calls.ts';
import { StepLanes } from './step-lanes.ts';
import type { ConductingContext } from './turn-runner.ts';
import { TurnView } from './turn-view.ts';

type Phase = 'declared' | 'replacing' | 'open' | 'closed';

/** Records inputs in order, with a view that has these lanes. */
function recordingContext(lanes: Record<string, Phase> = {}) {
  const inputs: string[] = [];
  const view = new TurnView();
  const states = Object.fromEntries(
    Object.entries(lanes).map(([lane, phase]) => [lane, { producer: 'supervisor', attempt: 1, phase, n: 1 }]),
  );
  view.apply({ record: { facts: [], aggregate: { lanes: states, calls: {} } } } as never);
  const writer = {
    add: (input: AgentInput) => {
      const name = 'artifact' in input ? ` ${input.artifact.name}` : '';
      const text = input.kind === 'artifact' ? ` ${input.parts[0]?.text?.trim()}` : '';
      inputs.push(`${input.kind}${name}${'lane' in input ? ` ${input.lane}` : ''}${text}`);
    },
    token: (lane: string, text: string) => void inputs.push(`text ${lane} ${text}`),
    flush: () => Promise.resolve(),
  };
  const delegated: unknown[] = [];
  const context = {
    work: { turn: 1 },
    view,
    writer,
    profile: CAIPE,
    displayName: 'P',
    delegate: (call: unknown) => void (delegated.push(call) && inputs.push('call')),
  };
  return { context: context as unknown as ConductingContext, inputs, delegated };
}

test('a tool starts, the model streams, the tool ends: start notice, streaming_result, end notice [S2-31]', async () => {
  const { context, inputs, delegated } = recordingContext();
  const calls = new AgentCalls(context);
  await calls.start('call-1-1-1', 'argocd', { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] } });
  const lanes = new StepLanes(context, '1');
  lanes.token('Hello');
  lanes.complete({ text: 'Hello' });
  const ended = { kind: 'call.ended', at: 0, call: 'call-1-1-1', agent: 'argocd', state: 'TASK_STATE_COMPLETED' } as const;
  calls.noticeEnd(ended);
  calls.noticeEnd(ended);
  assert.deepEqual(inputs, [
    'call',
    'artifact tool_notification_start 1/call-1-1-1/start 🔧 Supervisor: Calling Agent Argocd...',
    'open streaming_result 1/step-1/own',
    'text 1/step-1/own Hello',
    'close 1/step-1/own',
    'artifact tool_notification_end 1/call-1-1-1/end ✅ Supervisor: Argocd completed',
  ]);
  assert.equal(delegated.length, 1);
});

test('a streamed step is closed; a plan that was not streamed is written whole', () => {
  const { context, inputs } = recordingContext();
  const lanes = new StepLanes(context, '2');
  lanes.token('⟦p');
  lanes.end();
  lanes.complete({ text: '⟦p' });
  new StepLanes(context, '3').complete({ text: '', plan: '⟦q⟧' });
  assert.deepEqual(inputs, [
    'open execution_plan_streaming 1/step-2/plan',
    'text 1/step-2/plan ⟦',
    'text 1/step-2/plan p',
    'text 1/step-2/plan ⟧',
    'artifact execution_plan_update 1/step-2/plan ⟦p⟧',
    'open execution_plan_streaming 1/step-3/plan',
    'text 1/step-3/plan ⟦q⟧',
    'artifact execution_plan_update 1/step-3/plan ⟦q⟧',
  ]);
});

test("an earlier supervisor's step is written again if it was not closed, otherwise not touched", () => {
  const { context, inputs } = recordingContext({ '1/step-1/plan': 'closed', '1/step-1/own': 'open', '1/step-2/own': 'open' });
  new StepLanes(context, '1').complete({ text: '⟦p⟧ all of it' });
  // The lane is emptied, because its step was requested again and has no text this time.
  new StepLanes(context, '2').complete({ text: '' });
  assert.deepEqual(inputs, [
    'open streaming_result 1/step-1/own',
    'text 1/step-1/own  all of it',
    'close 1/step-1/own',
    'open streaming_result 1/step-2/own',
    'close 1/step-2/own',
  ]);
});

test('a step that breaks off opens its lanes again, and the next text replaces theirs', () => {
  const { context, inputs } = recordingContext();
  const lanes = new StepLanes(context, '1');
  lanes.token('⟦p⟧ hal');
  lanes.restart();
  lanes.token('whole');
  assert.deepEqual(inputs.slice(-3), [
    'open execution_plan_streaming 1/step-1/plan',
    'open streaming_result 1/step-1/own',
    'text 1/step-1/own whole',
  ]);
});
