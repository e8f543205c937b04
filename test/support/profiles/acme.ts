import type { Profile } from '@hopline/profiles';

/** A complete profile from outside Hopline. Progress of agents becomes states of the task. */
export default {
  name: 'acme',
  turn: 'conduct',
  plan: {
    streaming: { name: 'acme_plan', description: 'Plan of {supervisor}' },
    complete: { name: 'acme_plan', description: 'Plan of {supervisor}' },
  },
  answer: { name: 'acme_answer', description: 'Answer of {supervisor}' },
  result: { name: 'acme_result' },
  calls: {
    start: { name: 'acme_call', description: '{tool} begins', text: '{agent} calls {tool}\n' },
    end: { name: 'acme_call_end', description: '{tool} ends', text: '{tool} has ended\n' },
    failed: { name: 'acme_call_end', description: '{tool} fails', text: '{tool} has failed\n' },
  },
  agent: {
    text: { as: 'answer', nestedPlan: 'acme_inner_plan' },
    progress: 'status',
    notices: {
      start: { name: 'acme_tool', description: '{tool} begins', text: '{agent} uses {tool}\n' },
      end: { name: 'acme_tool_end', description: '{tool} ends', text: '{agent} has used {tool}\n' },
      failed: { name: 'acme_tool_end', description: '{tool} fails', text: '{agent} could not use {tool}\n' },
    },
  },
  kinds: {
    acme_plan: 'plan',
    acme_inner_plan: 'plan',
    acme_answer: 'answer',
    acme_result: 'result',
    acme_call: 'call-start',
    acme_call_end: 'call-end',
    acme_tool: 'call-start',
    acme_tool_end: 'call-end',
  },
} satisfies Profile;
