import type { Metadata } from '@hopline/a2a';
import { artifactKind } from '@hopline/profiles';

/** The start or end of a tool call, as reported by the agent. `callId` is present when the agent sent one. */
export type ToolNotice = { phase: 'start' | 'end'; tool: string; callId?: string; failed: boolean };

/**
 * Match the whole status text, never a prefix: an answer may contain, or be, `✅` or `✅ done` (S2-10). `Agent: ` may precede, and `**` may surround the name
 * (S2-3). Names have 1 to 128 characters without spaces, unlike prose.
 */
const START = /^\s*[🔧🔍]\s*(?:[^:\n]{1,64}:\s+)?Calling tool:\s*\**([\w.\-/]{1,128}?)\**(?:\.{3})?\s*$/u;
const END = /^\s*([✅❌])\s*(?:[^:\n]{1,64}:\s+)?Tool\s+\**([\w.\-/]{1,128}?)\**\s+(completed|failed)\s*$/u;
const ARTIFACT_TOOL = /^Tool call (?:started|completed|failed):\s*\**([\w.\-/]{1,128}?)\**$/;
const NOTICE_CHARS_MAX = 512;

/** Reads metadata `{tool, phase, toolCallId?, failed?}`, which takes precedence over the form of the text. */
export function noticeOfMetadata(metadata: Metadata | undefined, phase = metadata?.phase): ToolNotice | undefined {
  if (metadata === undefined || (phase !== 'start' && phase !== 'end')) return undefined;
  const { tool, toolCallId, failed } = metadata;
  if (typeof tool !== 'string' || tool === '') return undefined;
  return { phase, tool, ...(typeof toolCallId === 'string' && { callId: toolCallId }), failed: failed === true };
}

/** Reads the form of a status text. An end without an open call of that tool is text of the answer. */
export function noticeOfText(text: string, isOpen: (tool: string) => boolean): ToolNotice | undefined {
  if (text.length > NOTICE_CHARS_MAX) return undefined;
  const tool = START.exec(text)?.[1];
  if (tool !== undefined) return { phase: 'start', tool, failed: false };
  const [, glyph, ended, outcome] = END.exec(text) ?? [];
  if (ended === undefined || !isOpen(ended)) return undefined;
  return { phase: 'end', tool: ended, failed: glyph === '❌' || outcome === 'failed' };
}

/** Reads an artifact whose name marks a notice; metadata or description name the tool. */
export function noticeOfArtifact(artifact: { name?: string; description?: string; metadata?: Metadata }): ToolNotice | undefined {
  const kind = artifactKind(artifact.name);
  if (kind !== 'call-start' && kind !== 'call-end') return undefined;
  const phase = kind === 'call-start' ? 'start' : 'end';
  const fromMetadata = noticeOfMetadata(artifact.metadata, phase);
  if (fromMetadata !== undefined) return fromMetadata;
  const tool = ARTIFACT_TOOL.exec(artifact.description ?? '')?.[1];
  return tool === undefined ? undefined : { phase, tool, failed: artifact.description?.startsWith('Tool call failed') === true };
}
