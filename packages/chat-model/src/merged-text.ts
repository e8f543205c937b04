import {
  decodeSseBatches,
  isObject,
  type JsonObject,
  JsonStream,
  SSE_CONTENT_TYPE,
  type SseEvent,
  sseFrame,
  takesFastPaths,
} from '@hopline/a2a';
import { boundedFetch, boundedResponse, ResponseTooLarge } from '@hopline/outbound-http';
import { Arrivals } from './arrivals.ts';

/**
 * A `fetch` for the library. The library passes each event through four streams and a schema, which costs more than the rest of a token, so
 * texts that arrive together become one event whose content is a list. The library returns them one by one, unchanged. Every other event
 * passes unchanged. `bytesMax`: limit of one response that the library reads into memory because it is not a stream. `own`: sends the
 * requests.
 */
export function mergedTextFetch(bytesMax: number, own?: typeof fetch): typeof fetch {
  const send = boundedFetch({ bytesMax, boundedMethods: [], fetch: own });
  return async (input, init) => {
    const response = await send(input, init);
    const isStream = response.ok && response.headers.get('content-type')?.startsWith(SSE_CONTENT_TYPE) === true;
    return isStream && response.body !== null && takesFastPaths()
      ? mergedText(response, response.body, bytesMax)
      : boundedResponse(response, bytesMax);
  };
}

function mergedText(response: Response, body: ReadableStream<Uint8Array>, bytesMax: number): Response {
  const chunks = new Arrivals(body);
  const events = decodeSseBatches(within(chunks, bytesMax));
  const json = new JsonStream();
  const merged = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await events.next();
        if (done) controller.close();
        else controller.enqueue(Buffer.from(mergeTexts(value, json)));
      },
      cancel: reason => chunks.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(merged, { status, statusText, headers });
}

async function* within(chunks: Arrivals<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for (let arrived = await chunks.next(); arrived !== undefined; arrived = await chunks.next()) {
    const chunk = Buffer.concat(arrived);
    bytes += chunk.length;
    if (bytes > bytesMax) {
      await chunks.cancel().catch(() => {});
      throw new ResponseTooLarge(bytesMax);
    }
    yield chunk;
  }
}

type TextEvent = { value: JsonObject; choice: JsonObject; delta: JsonObject; text: string; data: string };

/** Writes the events as frames, with consecutive texts in one frame. */
function mergeTexts(events: readonly SseEvent[], json: JsonStream): string {
  let frames = '';
  let texts: TextEvent[] = [];
  const endTexts = () => {
    const [first] = texts;
    if (first !== undefined) frames += sseFrame({ data: texts.length === 1 ? first.data : mergedData(first, texts) });
    texts = [];
  };
  for (const { data } of events) {
    const text = textEvent(data, json);
    if (text !== undefined) texts.push(text);
    else {
      endTexts();
      frames += sseFrame({ data });
    }
  }
  endTexts();
  return frames;
}

function mergedData({ value, choice, delta }: TextEvent, texts: readonly TextEvent[]): string {
  const content = texts.map(({ text }) => ({ type: 'text', text }));
  return JSON.stringify({ ...value, choices: [{ ...choice, delta: { ...delta, content } }] });
}

/** An event that holds a text and no other member that the library reads. Undefined for any other event, and for text that is not JSON. */
function textEvent(data: string, json: JsonStream): TextEvent | undefined {
  const value = parse(data, json);
  if (!isObject(value) || isPresent(value.error) || isPresent(value.usage)) return undefined;
  const { choices } = value;
  const choice: unknown = Array.isArray(choices) && choices.length === 1 ? choices[0] : undefined;
  if (!isObject(choice) || !isObject(choice.delta) || isPresent(choice.finish_reason)) return undefined;
  const { delta } = choice;
  if (typeof delta.content !== 'string') return undefined;
  for (const name of Object.keys(delta)) if (name !== 'content' && name !== 'role' && isPresent(delta[name])) return undefined;
  return { value, choice, delta, text: delta.content, data };
}

function isPresent(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function parse(data: string, json: JsonStream): unknown {
  try {
    return json.read(data);
  } catch {
    return undefined;
  }
}
