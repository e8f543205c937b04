import type { Metadata } from '@hopline/a2a';
import { artifactKind } from '@hopline/profiles';

/** A tool call of the agent begins or ends, as the agent tells it. `callId` is there when the agent names the call. */
export type ToolNotice = { phase: 'start' | 'end'; tool: string; callId?: string; failed: boolean };

/**
 * The whole of a status text, not its beginning: an answer may hold, or be, `✅` or `✅ done` (S2-10). `Agent: ` may stand before, `**` around the name (S2-3).
 * Three to 128 characters of a name as tools have them; nothing that prose has.
 */
const START = /^\s*[🔧🔍]\s*(?:[^:\n]{1,64}:\s+)?Calling tool:\s*\**([\w.\-/]{1,128}?)\**(?:\.{3})?\s*$/u;
const END = /^\s*([✅❌])\s*(?:[^:\n]{1,64}:\s+)?Tool\s+\**([\w.\-/]{1,128}?)\**\s+(completed|failed)\s*$/u;
const ARTIFACT_TOOL = /^Tool call (?:started|completed|failed):\s*\**([\w.\-/]{1,128}?)\**$/;
const NOTICE_CHARS_MAX = 512;

/** By metadata `{tool, phase, toolCallId?, failed?}`: what an agent says of itself goes before how its text looks. */
export function noticeOfMetadata(metadata: Metadata | undefined, phase = metadata?.phase): ToolNotice | undefined {
  if (metadata === undefined || (phase !== 'start' && phase !== 'end')) return undefined;
  const { tool, toolCallId, failed } = metadata;
  if (typeof tool !== 'string' || tool === '') return undefined;
  return { phase, tool, ...(typeof toolCallId === 'string' && { callId: toolCallId }), failed: failed === true };
}

/** By the look of a status text. An end counts only when the agent has begun such a call: otherwise it is a sentence of the answer. */
export function noticeOfText(text: string, isOpen: (tool: string) => boolean): ToolNotice | undefined {
  if (text.length > NOTICE_CHARS_MAX) return undefined;
  const tool = START.exec(text)?.[1];
  if (tool !== undefined) return { phase: 'start', tool, failed: false };
  const [, glyph, ended, outcome] = END.exec(text) ?? [];
  if (ended === undefined || !isOpen(ended)) return undefined;
  return { phase: 'end', tool: ended, failed: glyph === '❌' || outcome === 'failed' };
}

/** An artifact that is a notice: by its name, and the tool by metadata or description. */
export function noticeOfArtifact(artifact: { name?: string; description?: string; metadata?: Metadata }): ToolNotice | undefined {
  const kind = artifactKind(artifact.name);
  if (kind !== 'call-start' && kind !== 'call-end') return undefined;
  const phase = kind === 'call-start' ? 'start' : 'end';
  const told = noticeOfMetadata(artifact.metadata, phase);
  if (told !== undefined) return told;
  const tool = ARTIFACT_TOOL.exec(artifact.description ?? '')?.[1];
  return tool === undefined ? undefined : { phase, tool, failed: artifact.description?.startsWith('Tool call failed') === true };
}
