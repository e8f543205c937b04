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

/** The operations of a client, independent of their names in a dialect. */
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

/** A value from an agent that is not an event of any dialect. The caller skips and counts it, and the stream continues. */
export type UnknownEvent = { unknown: 'not an object' | 'unknown kind' | 'unknown state' | 'no artifact' };

/** One decoded result of a stream. */
export type DecodedEvent = { event: StreamResponse } | UnknownEvent;

/** Operations that exist in every dialect. */
type Everywhere = 'send' | 'stream' | 'get' | 'cancel' | 'subscribe' | 'createPush' | 'getPush';

/** Push configurations of a dialect. The decoders throw INVALID_PARAMS with a path and a reason, never quoting a value. */
export type PushForm = {
  decodeCreate(params: unknown): CreatePushRequest;
  decodeGet(params: unknown): GetPushRequest;
  decodeList(params: unknown): ListPushRequest;
  decodeDelete(params: unknown): DeletePushRequest;
  /** Omits the token and credentials, which responses never contain (C-21). */
  encode(config: PushConfig): JsonObject;
  /** `nextPageToken` is empty on the last page. */
  encodeList(configs: readonly PushConfig[], nextPageToken: string): JsonObject | JsonObject[];
  /** The result of a delete. */
  readonly deleted: JsonObject | null;
};

/**
 * One wire form of A2A: pure functions between its JSON and the canonical types. Bindings (JSON-RPC, REST) frame the results.
 */
export interface Dialect {
  readonly name: DialectName;
  /** Method names. Only 1.0 lists tasks over JSON-RPC; the legacy form has only one push configuration per task and one card. */
  readonly methods: Readonly<Record<Everywhere, string> & Partial<Record<Operation, string>>>;
  readonly push: PushForm;

  /** These four throw INVALID_PARAMS with a path and a reason, and never quote a value. */
  decodeSend(params: unknown): SendRequest;
  decodeGet(params: unknown): GetTaskRequest;
  decodeCancel(params: unknown): CancelRequest;
  decodeSubscribe(params: unknown): SubscribeRequest;

  encodeTask(task: Task): JsonObject;
  encodeMessage(message: Message): JsonObject;
  /**
   * The result in a frame of a stream. `artifactIndex`: the index of the event's artifact in order of creation; only the legacy
   * form writes it.
   */
  encodeEvent(event: StreamResponse, artifactIndex?: number): JsonObject;
  /** The results of the frames for the current task: a single one if the dialect has an event for a whole task. */
  encodeSnapshot(task: Task): JsonObject[];
  /** JSON text to follow `"result":` in a frame: the result, and members next to it for clients that do not read the result (C-7). */
  frameText(result: JsonObject): string;
  /** The result of a send. */
  encodeSendResult(result: { task: Task } | { message: Message }): JsonObject;

  /** Encodes requests to agents of this dialect: here Hopline is the client. */
  encodeSend(request: SendRequest): JsonObject;
  decodeEvent(result: unknown): DecodedEvent;
}

/** The part of a dialect that a client needs. */
export type ClientDialect = Pick<Dialect, 'name' | 'methods' | 'encodeSend' | 'decodeEvent'>;

/** The operation of a method in `dialect`. Throws METHOD_NOT_FOUND, with a hint if another dialect has the method. */
export function operationOf(dialect: Dialect, method: string, others: readonly Dialect[]): Operation {
  const found = OPERATIONS.find(operation => dialect.methods[operation] === method);
  if (found !== undefined) return found;
  const other = others.find(one => hasMethod(one, method));
  if (other === undefined) {
    const detail = `A2A ${VERSION_OF[dialect.name]} has ${Object.values(dialect.methods).join(', ')}`;
    throw new A2AError('METHOD_NOT_FOUND', { detail });
  }
  const detail = `this method requires A2A-Version: ${VERSION_OF[other.name]}${other.name === '1.0' ? '' : ', or no such header'}`;
  throw new A2AError('METHOD_NOT_FOUND', { detail });
}

export function hasMethod(dialect: Dialect, method: string): boolean {
  return Object.values(dialect.methods).includes(method);
}
