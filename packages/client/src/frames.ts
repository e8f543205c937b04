import { A2AError, type ClientDialect, decodeSse, isObject, SSE_CONTENT_TYPE, type StreamResponse } from '@hopline/a2a/client';
import { FailedTry } from './failed-try.ts';
import { parseJson } from './parse-json.ts';
import { type BodyOptions, chunksOf } from './read-body.ts';
import { RetryLine } from './retry-line.ts';
import { errorOf } from './rpc-error.ts';
import { notA2A, resultOf, senderOf } from './transport.ts';

/** Expired generations; `from` and `to` are included. */
export type Missing = { from: number; to: number };

/** One frame of one connection. `event` is undefined for an event of an unknown kind. */
export type Frame = { cursor: string | undefined; event: StreamResponse | undefined } | { gap: Missing | 'unknown' };

/**
 * Yields the frames of one response until it ends. Throws FailedTry when the connection breaks, when the server drains, for an error in
 * place of an event, and for a frame that is not JSON, whose content a retry requests again.
 */
export async function* framesOf(
  response: Response,
  dialect: ClientDialect,
  { hasAnswered, ...options }: BodyOptions & { hasAnswered: boolean },
): AsyncGenerator<Frame> {
  const type = response.headers.get('content-type') ?? '';
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) {
    yield frameOf(await resultOf(response, options), undefined, dialect);
    return;
  }
  const { body } = response as { body?: typeof response.body };
  if (!type.toLowerCase().startsWith(SSE_CONTENT_TYPE)) {
    body?.cancel().catch(() => {});
    throw notA2A(`the response is not an event stream${senderOf(response)}`, hasAnswered);
  }
  if (!body) throw notA2A('the response has no body, or this `fetch` does not stream: pass one that does to createClient');
  const retry = new RetryLine();
  for await (const { id, event = 'message', data } of decodeSse(retry.watch(chunksOf(body, options)))) {
    if (event === 'gap') yield { gap: missingOf(parseJson(data)) };
    if (event !== 'message' && event !== 'drain') continue;
    const content = parseJson(data);
    if (!isObject(content)) throw new FailedTry(new A2AError('INVALID_AGENT_RESPONSE', { detail: 'a frame is not JSON' }));
    if (isObject(content.error)) throw new FailedTry(errorOf(content.error), { delayMs: retry.ms });
    yield frameOf(content.result, id, dialect);
  }
}

function frameOf(result: unknown, cursor: string | undefined, dialect: ClientDialect): Frame {
  const decoded = dialect.decodeEvent(result);
  return { cursor, event: 'event' in decoded ? decoded.event : undefined };
}

function missingOf(data: unknown): Missing | 'unknown' {
  const missing = isObject(data) ? data.missing : undefined;
  if (!isObject(missing) || typeof missing.from !== 'number' || typeof missing.to !== 'number') return 'unknown';
  return { from: missing.from, to: missing.to };
}
