import { StreamResponse as SdkStreamResponse, Task as SdkTask, SendMessageRequest } from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { DIALECTS, type Dialect, type Message, type NewPushConfig, type StreamResponse, type Task } from '@hopline/a2a';
import { A2AClient as Client025 } from 'a2a-sdk-0.2.5/client';
import { A2AClient as Client034 } from 'a2a-sdk-0.3.4/client';
import {
  DefaultAgentCardResolver as CardResolver0314,
  ClientFactory as ClientFactory0314,
  ClientFactoryOptions as ClientFactoryOptions0314,
} from 'a2a-sdk-0.3.14/client';
import { GrpcTransportFactory as GrpcTransportFactory0314 } from 'a2a-sdk-0.3.14/client/grpc';
import { type DrivenPush, pushOf0314, pushOfOlder, pushOfSdk } from './push-drivers.ts';

/** Operations of a client, with results of its own parser in canonical form. */
export type Driven = {
  agentName(): Promise<string>;
  /** `push`: a webhook configuration within the message. */
  send(message: Message, push?: NewPushConfig): Promise<Task>;
  stream(message: Message): AsyncIterable<StreamResponse>;
  get(taskId: string): Promise<Task>;
  cancel(taskId: string): Promise<Task>;
  follow(taskId: string): AsyncIterable<StreamResponse>;
  push: DrivenPush;
};

/** A client, configured with only an address. */
export type Driver = { name: string; dialect: '1.0' | '0.3'; open(url: string): Promise<Driven> };

const JSON_RPC_NAMES: Readonly<Record<number, string>> = { [-32001]: 'TaskNotFound', [-32002]: 'TaskNotCancelable' };

/** The specification's name for an error that a client throws. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name.replace(/Error$/, '') || error.message : String(error);
}

function decoded(dialect: Dialect, result: unknown): StreamResponse {
  const event = dialect.decodeEvent(result);
  if ('unknown' in event) throw new Error(`the client returned ${event.unknown}`);
  return event.event;
}

function taskOf(event: StreamResponse): Task {
  if (!('task' in event)) throw new Error('the client returned no task');
  return event.task;
}

async function* eventsOf(dialect: Dialect, results: AsyncIterable<unknown>): AsyncGenerator<StreamResponse> {
  for await (const result of results) yield decoded(dialect, result);
}

/**
 * Over HTTP+JSON and gRPC of 0.3 `@a2a-js/sdk` drops `append` when it converts from its Protocol Buffers types (0.3.14, and the same code
 * in the compatibility layer of 1.3.0). Its users can only treat a chunk of an open artifact of the same name as a continuation, which is
 * what this function does. `rest-binding-03.test.ts` and `packages/a2a-grpc` assert the wire.
 */
async function* withAppend(events: AsyncIterable<StreamResponse>): AsyncGenerator<StreamResponse> {
  const opened = new Map<string, string | undefined>();
  for await (const event of events) {
    if ('task' in event) for (const { artifactId, name } of event.task.artifacts ?? []) opened.set(artifactId, name);
    if (!('artifactUpdate' in event)) {
      yield event;
      continue;
    }
    const { artifactUpdate } = event;
    const { artifactId, name } = artifactUpdate.artifact;
    yield { artifactUpdate: { ...artifactUpdate, append: opened.has(artifactId) && opened.get(artifactId) === name } };
    if (artifactUpdate.lastChunk) opened.delete(artifactId);
    else opened.set(artifactId, name);
  }
}

type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC';
const TRANSPORTS = { JSONRPC: JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory, GRPC: GrpcTransportFactory };

/** 1.3.0. `legacy`: its compatibility layer, which gets a reduced card, because it would select the 1.0 interface of the complete one. */
async function openSdk(url: string, legacy: boolean, binding: Binding = 'JSONRPC'): Promise<Driven> {
  const legacyCompat = { enabled: legacy };
  const transports = [new TRANSPORTS[binding]({ legacyCompat })];
  const fetchImpl: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const { supportedInterfaces: _newer, ...card } = (await response.json()) as Record<string, unknown>;
    return Response.json(binding === 'HTTP+JSON' ? preferringRest(card) : card);
  };
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat, ...(legacy && { fetchImpl }) });
  // `createFrom` would keep the default transports as well.
  const options = { ...ClientFactoryOptions.default, transports, cardResolver };
  const client = await new ClientFactory(options).createFromUrl(url);
  if (client.protocolVersion !== (legacy ? '0.3' : '1.0')) throw new Error(`the client uses ${client.protocolVersion}`);
  const dialect = DIALECTS['1.0'];
  const request = (message: Message, push?: NewPushConfig) =>
    SendMessageRequest.fromJSON(dialect.encodeSend({ message, blocking: true, ...(push && { push }) }));
  const task = (value: SdkTask) => taskOf(decoded(dialect, { task: SdkTask.toJSON(value) }));
  const read = async function* (stream: AsyncIterable<SdkStreamResponse>) {
    for await (const event of stream) yield decoded(dialect, SdkStreamResponse.toJSON(event));
  };
  const events = (stream: AsyncIterable<SdkStreamResponse>) =>
    legacy && binding !== 'JSONRPC' ? withAppend(read(stream)) : read(stream);
  return {
    agentName: async () => (await client.getAgentCard()).name,
    send: async (message, push) => task((await client.sendMessage(request(message, push))) as SdkTask),
    stream: message => events(client.sendMessageStream(request(message))),
    get: async id => task(await client.getTask({ id, tenant: '' })),
    cancel: async id => task(await client.cancelTask({ id, tenant: '', metadata: undefined })),
    follow: id => events(client.resubscribeTask({ id, tenant: '' })),
    push: pushOfSdk(client),
  };
}

/** A card that prefers HTTP+JSON. */
function preferringRest<T extends object>(card: T): T {
  return { ...card, preferredTransport: 'HTTP+JSON' };
}

async function open0314(url: string, binding: Binding = 'JSONRPC'): Promise<Driven> {
  const card = await new CardResolver0314().resolve(url);
  const options = {
    ...ClientFactoryOptions0314.default,
    ...(binding === 'GRPC' && { transports: [new GrpcTransportFactory0314()] }),
  };
  const client = await new ClientFactory0314(options).createFromAgentCard(binding === 'HTTP+JSON' ? preferringRest(card) : card);
  const dialect = DIALECTS['0.3'];
  type Params = Parameters<typeof client.sendMessage>[0];
  const params = (message: Message, push?: NewPushConfig) =>
    dialect.encodeSend({ message, blocking: true, ...(push && { push }) }) as unknown as Params;
  const task = (value: unknown) => taskOf(decoded(dialect, value));
  const events = (results: AsyncIterable<unknown>) =>
    binding === 'JSONRPC' ? eventsOf(dialect, results) : withAppend(eventsOf(dialect, results));
  return {
    agentName: async () => (await client.getAgentCard()).name,
    send: async (message, push) => task(await client.sendMessage(params(message, push))),
    stream: message => events(client.sendMessageStream(params(message))),
    get: async id => task(await client.getTask({ id })),
    cancel: async id => task(await client.cancelTask({ id })),
    follow: id => events(client.resubscribeTask({ id })),
    push: pushOf0314(client),
  };
}

/** Clients of 0.2 and early 0.3 return JSON-RPC responses. */
function openOlder(client: Client025 | Client034): Driven {
  const dialect = DIALECTS['0.3'];
  type Params = Parameters<Client034['sendMessage']>[0];
  const params = (message: Message, push?: NewPushConfig) =>
    dialect.encodeSend({ message, blocking: true, ...(push && { push }) }) as unknown as Params & never;
  const task = (response: object) => {
    const { result, error } = response as { result?: unknown; error?: { code: number; message: string } };
    if (error !== undefined)
      throw Object.assign(new Error(error.message), { name: JSON_RPC_NAMES[error.code] ?? `${error.code}` });
    return taskOf(decoded(dialect, result));
  };
  return {
    agentName: async () => (await client.getAgentCard()).name,
    send: async (message, push) => task(await client.sendMessage(params(message, push))),
    stream: message => eventsOf(dialect, client.sendMessageStream(params(message))),
    get: async id => task(await client.getTask({ id })),
    cancel: async id => task(await client.cancelTask({ id })),
    follow: id => eventsOf(dialect, client.resubscribeTask({ id })),
    push: pushOfOlder(client),
  };
}

export const DRIVERS: readonly Driver[] = [
  { name: '@a2a-js/sdk 1.3.0', dialect: '1.0', open: url => openSdk(url, false) },
  { name: '@a2a-js/sdk 1.3.0 over HTTP+JSON', dialect: '1.0', open: url => openSdk(url, false, 'HTTP+JSON') },
  { name: '@a2a-js/sdk 1.3.0 as a 0.3 client', dialect: '0.3', open: url => openSdk(url, true) },
  { name: '@a2a-js/sdk 1.3.0 as a 0.3 client over HTTP+JSON', dialect: '0.3', open: url => openSdk(url, true, 'HTTP+JSON') },
  { name: '@a2a-js/sdk 0.3.14', dialect: '0.3', open: url => open0314(url) },
  { name: '@a2a-js/sdk 0.3.14 over HTTP+JSON', dialect: '0.3', open: url => open0314(url, 'HTTP+JSON') },
  { name: '@a2a-js/sdk 0.3.4', dialect: '0.3', open: async url => openOlder(new Client034(url)) },
  { name: '@a2a-js/sdk 0.2.5', dialect: '0.3', open: async url => openOlder(new Client025(url)) },
];

/** Drivers for a card with gRPC. */
export const GRPC_DRIVERS: readonly Driver[] = [
  { name: '@a2a-js/sdk 1.3.0 over gRPC', dialect: '1.0', open: url => openSdk(url, false, 'GRPC') },
  { name: '@a2a-js/sdk 1.3.0 as a 0.3 client over gRPC', dialect: '0.3', open: url => openSdk(url, true, 'GRPC') },
  { name: '@a2a-js/sdk 0.3.14 over gRPC', dialect: '0.3', open: url => open0314(url, 'GRPC') },
];
