import {
  type ArtifactInput,
  type LaneArtifact,
  type NoticePhase,
  type NoticeTemplates,
  type StatusInput,
  titleCase,
} from '@hopline/events';
import { TOOL_NOTICES, WAITING } from './tool-notices.ts';

/** `arguments` and `result` of the call, if its agent shows them. */
export type NoticeOptions = {
  lane: string;
  agent: string;
  tool: string;
  callId: string;
  arguments?: unknown;
  result?: unknown;
};

/**
 * The notice that clients see for the start or end of a call. Each is one artifact and never part of the answer (S2-4, C-1). Clients pair
 * start and end by the metadata, which also states whether the call failed or waits. The text is for people (C-22).
 */
export function callNotice(
  templates: NoticeTemplates,
  phase: NoticePhase,
  { lane, agent, tool: name, callId, arguments: args, result }: NoticeOptions,
): ArtifactInput {
  const { waiting = WAITING, rejected = templates.failed } = templates;
  const template = { ...templates, waiting, rejected }[phase];
  // Some agents write the name in bold (S2-3).
  const tool = name.replaceAll('**', '');
  const [known, artifactKind] = phase === 'start' ? [TOOL_NOTICES.start, 'call-start'] : [TOOL_NOTICES.end, 'call-end'];
  // The kind is recorded, because other clusters and clients do not know the names of a custom profile.
  const kind = template.name !== known.name && { artifactKind };
  const failed = (phase === 'failed' || phase === 'rejected') && { failed: true };
  const outcome = phase === 'waiting' ? { waiting: true } : failed;
  const values = { ...(args !== undefined && { arguments: args }), ...(result !== undefined && { result }) };
  const metadata = { sourceAgent: agent, tool, toolCallId: callId, ...kind, ...outcome, ...values };
  const description = fill(template.description, { agent, tool });
  const text = fill(template.text, { agent: titleCase(agent), tool: titleCase(tool) });
  return {
    kind: 'artifact',
    lane,
    artifact: { name: template.name, description, metadata },
    parts: [{ text }],
    append: false,
    last: true,
  };
}

type Progress = { lane: string; taskId: string; parts: ArtifactInput['parts']; metadata?: LaneArtifact['metadata'] };

/**
 * Progress as a status of a working task. Its message has the same id in every attempt, so that a later attempt knows that it has already
 * been shown.
 */
export function progressStatus({ lane, taskId, parts, metadata }: Progress): StatusInput {
  const message = { messageId: progressId(lane, taskId), role: 'ROLE_AGENT' as const, parts, ...(metadata && { metadata }) };
  return { kind: 'status', state: 'TASK_STATE_WORKING', message };
}

export function progressId(lane: string, taskId: string): string {
  return `${lane}-${taskId}`;
}

/** The lane whose progress has this id; undefined for another message. */
export function progressLane(messageId: string, taskId: string): string | undefined {
  return messageId.endsWith(`-${taskId}`) ? messageId.slice(0, -taskId.length - 1) : undefined;
}

/** A notice as a status, for a profile whose notices are statuses (`NoticeTemplates.as`). */
export function noticeStatus({ lane, artifact: { metadata }, parts }: ArtifactInput, taskId: string): StatusInput {
  return progressStatus({ lane, taskId, parts, ...(metadata && { metadata }) });
}

/** Replaces each `{name}` with its value. A value is never interpreted as a template. */
export function fill(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (placeholder, name: string) => values[name] ?? placeholder);
}
