import { type ArtifactInput, type LaneArtifact, titleCase } from '@hopline/events';
import { ANSWER_NAME } from './turn-view.ts';

/** The supervisor's notices around a call: machine fields decide, the text is a template (C-22). One artifact each, never part of the answer. */
export function callStartNotice(lane: string, call: string, agent: string): ArtifactInput {
  return notice(lane, call, agent, {
    name: 'tool_notification_start',
    description: `Tool call started: ${agent}`,
    text: `🔧 Supervisor: Calling Agent ${titleCase(agent)}...\n`,
  });
}

export function callEndNotice(lane: string, call: string, agent: string, failed: boolean): ArtifactInput {
  return notice(lane, call, agent, {
    name: 'tool_notification_end',
    description: `Tool call ${failed ? 'failed' : 'completed'}: ${agent}`,
    text: failed ? `❌ Supervisor: ${titleCase(agent)} failed\n` : `✅ Supervisor: ${titleCase(agent)} completed\n`,
  });
}

function notice(
  lane: string,
  call: string,
  agent: string,
  shown: { name: string; description: string; text: string },
): ArtifactInput {
  const { name, description, text } = shown;
  const metadata = { sourceAgent: 'supervisor', tool: agent, toolCallId: call };
  return { kind: 'artifact', lane, artifact: { name, description, metadata }, parts: [{ text }], append: false, last: true };
}

/** How text streams to the client: an agent's with the call it came by, the supervisor's own without (C-24). */
export function answerHeader(displayName: string, sourceAgent: string, call?: string): LaneArtifact {
  const metadata = { sourceAgent, ...(call !== undefined && { toolCallId: call }) };
  return { name: ANSWER_NAME, description: `Streaming result from ${displayName}`, metadata };
}
