import { A2AError } from './errors.ts';
import type { JsonObject } from './json-value.ts';
import type {
  CancelRequest,
  CreatePushRequest,
  DeletePushRequest,
  GetPushRequest,
  GetTaskRequest,
  ListPushRequest,
  PushConfig,
  SendRequest,
  SubscribeRequest,
} from './requests.ts';
import type { Message, StreamResponse, Task } from './types.ts';
import { type DialectName, VERSION_OF } from './version.ts';

/** What a client can ask, whatever its dialect calls it. */
export const OPERATIONS = [
  'send',
  'stream',
  'get',
  'list',
  'cancel',
  'subscribe',
  'createPush',
  'getPush',
  'listPush',
  'deletePush',
  'extendedCard',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** What an agent sent that is no event of any dialect. The caller skips and counts it; it never ends the stream (S0-42). */
export type UnknownEvent = { unknown: 'not an object' | 'unknown kind' | 'unknown state' | 'no artifact' };

/** One result of a stream, read with every tolerance that agents in the field ask for. */
export type DecodedEvent = { event: StreamResponse } | UnknownEvent;

/** Operations of every dialect. */
type Everywhere = 'send' | 'stream' | 'get' | 'cancel' | 'subscribe' | 'createPush' | 'getPush';

/** How a dialect writes push configurations. The decoders throw INVALID_PARAMS with a path and a reason, and never quote a value. */
export type PushForm = {
  decodeCreate(params: unknown): CreatePushRequest;
  decodeGet(params: unknown): GetPushRequest;
  decodeList(params: unknown): ListPushRequest;
  decodeDelete(params: unknown): DeletePushRequest;
  /** Without its token and credentials (C-21): who set them knows them, and nobody else may. */
  encode(config: PushConfig): JsonObject;
  /** `nextPageToken` is empty on the last page. */
  encodeList(configs: readonly PushConfig[], nextPageToken: string): JsonObject | JsonObject[];
  /** The result of a delete. */
  readonly deleted: JsonObject | null;
};

/** One wire form of A2A: pure functions between its JSON and the canonical types. Bindings (JSON-RPC, REST) wrap what these return. */
export interface Dialect {
  readonly name: DialectName;
  /** 1.0 alone can list tasks over JSON-RPC; the legacy form has one push configuration a task, and one card. */
  readonly methods: Readonly<Record<Everywhere, string> & Partial<Record<Operation, string>>>;
  readonly push: PushForm;

  /** These four throw INVALID_PARAMS with a path and a reason, and never quote a value. */
  decodeSend(params: unknown): SendRequest;
  decodeGet(params: unknown): GetTaskRequest;
  decodeCancel(params: unknown): CancelRequest;
  decodeSubscribe(params: unknown): SubscribeRequest;

  encodeTask(task: Task): JsonObject;
  encodeMessage(message: Message): JsonObject;
  /** The result of a frame of a stream. `artifactIndex`: which of the task's artifacts it is about, in order of opening; only the legacy form says it. */
  encodeEvent(event: StreamResponse, artifactIndex?: number): JsonObject;
  /** The results of the frames that say how a task is now: one, where the dialect has an event for a whole task. */
  encodeSnapshot(task: Task): JsonObject[];
  /** Members that a frame has beside its result, for readers that do not look into it (C-7). */
  besideResult?(result: JsonObject): JsonObject;
  /** The result of a send that waited. */
  encodeSendResult(result: { task: Task } | { message: Message }): JsonObject;

  /** The client's side, for agents of this dialect that Hopline calls. */
  encodeSend(request: SendRequest): JsonObject;
  decodeEvent(result: unknown): DecodedEvent;
}

/** The operation a method names in `dialect`. Throws METHOD_NOT_FOUND, with a hint when another dialect has it. */
export function operationOf(dialect: Dialect, method: string, others: readonly Dialect[]): Operation {
  const found = OPERATIONS.find(operation => dialect.methods[operation] === method);
  if (found !== undefined) return found;
  const other = others.find(one => hasMethod(one, method));
  if (other === undefined) throw new A2AError('METHOD_NOT_FOUND');
  const detail = `this is a method of A2A ${VERSION_OF[other.name]}: send A2A-Version: ${VERSION_OF[other.name]}${other.name === '1.0' ? '' : ' or no such header'}`;
  throw new A2AError('METHOD_NOT_FOUND', { detail });
}

export function hasMethod(dialect: Dialect, method: string): boolean {
  return Object.values(dialect.methods).includes(method);
}

/** JSON text of a result with what stands beside it, for the place after `"result":` of a frame. */
export function frameResult(dialect: Dialect, result: JsonObject): string {
  const json = JSON.stringify(result);
  const beside = dialect.besideResult?.(result) ?? {};
  return Object.keys(beside).length === 0 ? json : `${json},${JSON.stringify(beside).slice(1, -1)}`;
}
