import type { JsonObject } from '@hopline/a2a';
import { type CallOptions, call, type Frame, open, type Rig, type RpcAnswer } from './http-server.test-kit.ts';

/** Params of a legacy message: no message id, but a task id. */
export const legacyParams = (id: string, text: string, more: JsonObject = {}): JsonObject => ({
  id,
  message: { role: 'user', parts: [{ type: 'text', text }] },
  ...more,
});

export const legacy = { dialect: 'legacy' } as const;

export async function send(rig: Rig, params: JsonObject, options: CallOptions = {}): Promise<RpcAnswer> {
  return call(rig, 'send', params, { ...legacy, ...options });
}

export async function stream(rig: Rig, params: JsonObject, options: CallOptions = {}): Promise<Frame[]> {
  return (await open(rig, 'stream', params, { ...legacy, ...options })).rest();
}
