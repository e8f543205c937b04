import { invalidMember } from '../errors.ts';
import { type JsonObject, metadata, object, present, texts } from '../json-value.ts';
import type { CancelRequest, GetTaskRequest, NewPushConfig, SendRequest, SubscribeRequest } from '../requests.ts';
import type { Message } from '../types.ts';
import { cancelParams, getParams, subscribeParams } from './fields.ts';
import { paramsCheck } from './validate.ts';

/** Params that are the same in 1.0 and 0.3, validated and decoded. All functions throw INVALID_PARAMS. */

const checkGet = paramsCheck(getParams);
const checkCancel = paramsCheck(cancelParams);
const checkSubscribe = paramsCheck(subscribeParams);

export function decodeGet(params: unknown): GetTaskRequest {
  checkGet(params);
  const { id, historyLength } = params as JsonObject;
  return { taskId: id as string, ...present({ historyLength: number(historyLength) }) };
}

export function decodeCancel(params: unknown): CancelRequest {
  checkCancel(params);
  const { id, metadata: given } = params as JsonObject;
  return { taskId: id as string, ...present({ metadata: metadata(given) }) };
}

export function decodeSubscribe(params: unknown): SubscribeRequest {
  checkSubscribe(params);
  return { taskId: (params as JsonObject).id as string };
}

/** Differences between dialects in the params of a send. */
type SendNotation = {
  check(params: unknown): void;
  message(value: JsonObject): Message;
  blocking(configuration: JsonObject): boolean;
  push(configuration: JsonObject): NewPushConfig | undefined;
};

export function decodeSend(params: unknown, notation: SendNotation): SendRequest {
  notation.check(params);
  const { message, configuration, metadata: given } = params as JsonObject;
  const settings = object(configuration) ?? {};
  return {
    message: withStandardBase64(notation.message(message as JsonObject)),
    blocking: notation.blocking(settings),
    ...present({
      metadata: metadata(given),
      historyLength: number(settings.historyLength),
      acceptedOutputModes: texts(settings.acceptedOutputModes),
      push: notation.push(settings),
    }),
  };
}

export function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/**
 * A validated message whose bytes have the alphabet and the padding of standard base64, as ProtoJSON writes them. It reads the URL-safe
 * alphabet and absent padding too, but agents need not: Python's `b64decode` leaves `-` and `_` out. Throws INVALID_PARAMS for a length
 * that no bytes have.
 */
export function withStandardBase64(message: Message): Message {
  if (message.parts.every(({ raw }) => raw === undefined)) return message;
  const parts = message.parts.map((part, index) => (part.raw === undefined ? part : { ...part, raw: standard(part.raw, index) }));
  return { ...message, parts };
}

function standard(raw: string, index: number): string {
  if (raw.length % 4 === 0 && !/[-_]/.test(raw)) return raw;
  const digits = raw.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/');
  if (digits.length % 4 === 1) throw invalidMember(`message.parts[${index}].raw`, 'must be base64 of a whole number of bytes');
  return digits.padEnd(Math.ceil(digits.length / 4) * 4, '=');
}
