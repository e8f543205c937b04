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
    message: notation.message(message as JsonObject),
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
