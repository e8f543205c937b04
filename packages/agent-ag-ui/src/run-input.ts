import { hash } from 'node:crypto';
import { isObject, type JsonObject, type Message, type Part } from '@hopline/a2a';
import type { Turn } from '@hopline/agent';

/** UTF-16 units of the JSON of a state that is kept for the next run of its thread. */
export const STATE_UNITS_MAX = 64 * 1024;

/** State that a turn passes to the next one: the state of the thread, and the question that the next message answers. */
export type ThreadResume = { state?: JsonObject; interruptId?: string };

export function resumeOf(resume: unknown): ThreadResume {
  if (!isObject(resume)) return {};
  const { state, interruptId } = resume;
  return { ...(isObject(state) && { state }), ...(typeof interruptId === 'string' && { interruptId }) };
}

/** A state above its bound is left out. */
export function keptResume({ state, interruptId }: ThreadResume): ThreadResume {
  const isKept = state !== undefined && JSON.stringify(state).length <= STATE_UNITS_MAX;
  return { ...(isKept && { state }), ...(interruptId !== undefined && { interruptId }) };
}

/**
 * The input of the run that is a turn. The thread is the context of its owner, because two owners may have chosen the same context id. Ids
 * of threads and runs are derived from those of contexts and messages, so that a server that stores runs finds the run of an earlier
 * attempt. They differ from those ids, because a server may keep its messages in the same log. The answer to a question is in `resume`, and
 * not in the messages.
 */
export function runInputOf({ contextId, owner, message, history, resume }: Turn): JsonObject {
  const { state = {}, interruptId } = resumeOf(resume);
  const threadId = idOf('thread', owner?.tenant, owner?.subject, contextId);
  const asked = interruptId === undefined ? [message] : [];
  return {
    ...{ threadId, runId: idOf('run', threadId, message.messageId), state, tools: [], context: [], forwardedProps: {} },
    messages: [...history, ...asked].map(threadMessage),
    ...(interruptId !== undefined && { resume: [{ interruptId, status: 'resolved', payload: payloadOf(message.parts) }] }),
  };
}

function idOf(...of: readonly (string | undefined)[]): string {
  return hash('sha256', JSON.stringify(of.map(one => one ?? null))).slice(0, 32);
}

function threadMessage({ messageId: id, role, parts }: Message): JsonObject {
  if (role === 'ROLE_USER') return { id, role: 'user', content: contentOf(parts) };
  return { id, role: 'assistant', content: parts.map(textOfPart).join('') };
}

/** A message of only texts becomes one text, which servers of every version read. */
function contentOf(parts: readonly Part[]): string | JsonObject[] {
  if (parts.every(({ raw, url }) => raw === undefined && url === undefined)) return parts.map(textOfPart).join('');
  return parts.map(part => {
    const { raw, url, mediaType } = part;
    const value = raw ?? url;
    if (value === undefined) return { type: 'text', text: textOfPart(part) };
    const mimeType = mediaType ?? 'application/octet-stream';
    const kind = /^(image|audio|video)\//.exec(mimeType)?.[1] ?? 'document';
    return { type: kind, source: { type: raw === undefined ? 'url' : 'data', value, mimeType } };
  });
}

/** An answer of one data part is that data; any other is its text. */
function payloadOf(parts: readonly Part[]): unknown {
  const [part] = parts;
  return parts.length === 1 && part?.data !== undefined ? part.data : parts.map(textOfPart).join('');
}

function textOfPart({ text, data }: Part): string {
  return text ?? (data === undefined ? '' : JSON.stringify(data));
}
