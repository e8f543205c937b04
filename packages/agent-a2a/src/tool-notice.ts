import { isObject, type Metadata, type Part } from '@hopline/a2a';
import { kindOfArtifact } from '@hopline/profiles';

/**
 * The start or end of a tool call, as reported by the agent. `callId` is present when the agent sent one; `waiting`: the call waits
 * for the client. `arguments`, `result`: of the call, in any form.
 */
export type ToolNotice = {
  phase: 'start' | 'end';
  tool: string;
  callId?: string;
  failed: boolean;
  waiting?: true;
  arguments?: unknown;
  result?: unknown;
};

/**
 * They match the whole status text, never a prefix, because an answer may contain, or be, `✅` or `✅ done` (S2-10). `Agent: ` may precede
 * the notice, and `**` may surround the name (S2-3). Names have 1 to 128 characters without spaces, unlike prose.
 */
const START = /^\s*[🔧🔍]\s*(?:[^:\n]{1,64}:\s+)?Calling tool:\s*\**([\w.\-/]{1,128}?)\**(?:\.{3})?\s*$/u;
const END = /^\s*([✅❌])\s*(?:[^:\n]{1,64}:\s+)?Tool\s+\**([\w.\-/]{1,128}?)\**\s+(completed|failed)\s*$/u;
const ARTIFACT_TOOL = /^Tool call (started|completed|failed|rejected|waiting):\s*\**([\w.\-/]{1,128}?)\**$/;
const NOTICE_CHARS_MAX = 512;

/** Reads metadata `{tool, phase, toolCallId?, failed?, waiting?, arguments?, result?}`, which takes precedence over the form of the text. */
export function noticeOfMetadata(metadata: Metadata | undefined, phase = metadata?.phase): ToolNotice | undefined {
  if (metadata === undefined || (phase !== 'start' && phase !== 'end')) return undefined;
  const { tool, toolCallId, failed, waiting, arguments: args, result } = metadata;
  if (typeof tool !== 'string' || tool === '') return undefined;
  const callId = typeof toolCallId === 'string' && { callId: toolCallId };
  const ended = phase === 'end' && {
    ...(waiting === true && { waiting: true as const }),
    ...(result !== undefined && { result }),
  };
  return { phase, tool, ...callId, failed: failed === true, ...(args !== undefined && { arguments: args }), ...ended };
}

/** The error in the response of an ADK call that waits for its confirmation (`FunctionTool.run_async`). */
const WAITS_FOR_CONFIRMATION = 'This tool call requires confirmation, please approve or reject.';

/** Reads a part of Google ADK, whose A2A server sends calls and their responses as data. A response with `error` is a failure. */
export function noticeOfPart({ data, metadata }: Part): ToolNotice | undefined {
  const type = metadata?.adk_type;
  if ((type !== 'function_call' && type !== 'function_response') || !isObject(data)) return undefined;
  const { id, name: tool, args, response } = data;
  if (typeof tool !== 'string' || tool === '') return undefined;
  const callId = typeof id === 'string' && { callId: id };
  if (type === 'function_call')
    return { phase: 'start', tool, ...callId, failed: false, ...(args !== undefined && { arguments: args }) };
  const error = isObject(response) ? response.error : undefined;
  if (error === WAITS_FOR_CONFIRMATION) return { phase: 'end', tool, ...callId, failed: false, waiting: true };
  const failed = error !== undefined;
  return { phase: 'end', tool, ...callId, failed, ...(response !== undefined && { result: response }) };
}

/** Reads the form of a status text. An end without an open call of that tool is part of the answer's text. */
export function noticeOfText(text: string, isOpen: (tool: string) => boolean): ToolNotice | undefined {
  // A quick check spares most tokens both expressions.
  if (text.length > NOTICE_CHARS_MAX || !text.includes('ool')) return undefined;
  const tool = START.exec(text)?.[1];
  if (tool !== undefined) return { phase: 'start', tool, failed: false };
  const [, glyph, ended, outcome] = END.exec(text) ?? [];
  if (ended === undefined || !isOpen(ended)) return undefined;
  return { phase: 'end', tool: ended, failed: glyph === '❌' || outcome === 'failed' };
}

/**
 * Reads an artifact whose name or recorded kind marks a notice; its metadata or description names the tool and shows whether the call
 * failed.
 */
export function noticeOfArtifact(artifact: { name?: string; description?: string; metadata?: Metadata }): ToolNotice | undefined {
  const kind = kindOfArtifact(artifact);
  if (kind !== 'call-start' && kind !== 'call-end') return undefined;
  const phase = kind === 'call-start' ? 'start' : 'end';
  const [, outcome, described] = ARTIFACT_TOOL.exec(artifact.description ?? '') ?? [];
  const named = noticeOfMetadata(artifact.metadata, phase);
  const tool = named?.tool ?? described;
  if (tool === undefined) return undefined;
  // Some servers state the outcome only in the description.
  const failed = named?.failed === true || (phase === 'end' && (outcome === 'failed' || outcome === 'rejected'));
  return { phase, ...named, tool, failed };
}
