import { type ArtifactInput, titleCase } from '@hopline/events';

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
