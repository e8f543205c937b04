import { type ArtifactInput, titleCase } from '@hopline/events';

export type ToolPhase = 'start' | 'end' | 'failed';

const NAMES = { start: 'tool_notification_start', end: 'tool_notification_end', failed: 'tool_notification_end' } as const;
const VERBS = { start: 'started', end: 'completed', failed: 'failed' } as const;

/** A tool call of an agent as the client sees it: one artifact each for start and end, never part of the answer (S2-1, S2-4 to S2-7, S2-37, C-1). */
export function toolNotice(lane: string, agent: string, tool: string, toolCallId: string, phase: ToolPhase): ArtifactInput {
  // S2-3: some agents write the name in bold.
  const name = tool.replaceAll('**', '');
  return {
    kind: 'artifact',
    lane,
    artifact: {
      name: NAMES[phase],
      description: `Tool call ${VERBS[phase]}: ${name}`,
      metadata: { sourceAgent: agent, tool: name, toolCallId },
    },
    parts: [{ text: noticeText(titleCase(agent), titleCase(name), phase) }],
    append: false,
    last: true,
  };
}

function noticeText(agent: string, tool: string, phase: ToolPhase): string {
  if (phase === 'start') return `🔧 ${agent}: Calling tool: ${tool}\n`;
  return phase === 'end' ? `✅ ${agent}: Tool ${tool} completed\n` : `❌ ${agent}: Tool ${tool} failed\n`;
}
