import type { ConductingProfile, PlanArtifacts } from './profile.ts';
import { TOOL_NOTICES } from './tool-notices.ts';

/** The artifacts of a CAIPE supervisor, by which its front ends dispatch (S0-44). */
export const CAIPE: ConductingProfile & { plan: PlanArtifacts } = {
  name: 'caipe',
  turn: 'conduct',
  plan: {
    streaming: { name: 'execution_plan_streaming', description: 'Execution plan streaming in progress' },
    complete: { name: 'execution_plan_update', description: 'Complete execution plan streamed to user' },
  },
  answer: { name: 'streaming_result', description: 'Streaming result from {supervisor}' },
  result: { name: 'partial_result', description: 'Partial result from {supervisor} (stream ended)' },
  calls: {
    start: { ...TOOL_NOTICES.start, text: '🔧 {agent}: Calling Agent {tool}...\n' },
    end: { ...TOOL_NOTICES.end, text: '✅ {agent}: {tool} completed\n' },
    failed: { ...TOOL_NOTICES.failed, text: '❌ {agent}: {tool} failed\n' },
    rejected: {
      ...TOOL_NOTICES.failed,
      description: 'Tool call rejected: {tool}',
      text: '❌ {agent}: {tool} rejected the message\n',
    },
  },
  separateClose: true,
  agent: {
    // Clients find the plan of a task by its name, and a task has one plan (S0-9).
    text: { as: 'answer', nestedPlan: 'agent_execution_plan' },
    progress: { name: 'progress' },
    notices: TOOL_NOTICES,
  },
  kinds: {
    execution_plan_streaming: 'plan',
    execution_plan_update: 'plan',
    agent_execution_plan: 'plan',
    streaming_result: 'answer',
    partial_result: 'result',
    // C-25: CAIPE servers in the field use this name, too.
    final_result: 'result',
    tool_notification_start: 'call-start',
    tool_notification_end: 'call-end',
    // C-1: the name that CAIPE documents in addition.
    tool_notification_complete: 'call-end',
    progress: 'progress',
  },
};
