import { StreamResponse as SdkStreamResponse, Task as SdkTask, SendMessageRequest } from '@a2a-js/sdk';
import { ClientFactory, ClientFactoryOptions, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { DIALECTS, type Dialect, type Message, type StreamResponse, type Task } from '@hopline/a2a';
import { A2AClient as Client025 } from 'a2a-sdk-0.2.5/client';
import { A2AClient as Client034 } from 'a2a-sdk-0.3.4/client';
import { ClientFactory as ClientFactory0314 } from 'a2a-sdk-0.3.14/client';

/** What any client can do, in the canonical form: what it was told, after its own parser. */
export type Driven = {
  agentName(): Promise<string>;
  send(message: Message): Promise<Task>;
  stream(message: Message): AsyncIterable<StreamResponse>;
  get(taskId: string): Promise<Task>;
  cancel(taskId: string): Promise<Task>;
  follow(taskId: string): AsyncIterable<StreamResponse>;
};

/** A client as people use it, from the address alone. */
export type Driver = { name: string; dialect: '1.0' | '0.3'; open(url: string): Promise<Driven> };

const JSON_RPC_NAMES: Readonly<Record<number, string>> = { [-32001]: 'TaskNotFound', [-32002]: 'TaskNotCancelable' };

/** The error a client reports, by the name of the specification. */
export function errorName(error: unknown): string {
  return error instanceof Error ? error.name.replace(/Error$/, '') || error.message : String(error);
}

function decoded(dialect: Dialect, result: unknown): StreamResponse {
  const event = dialect.decodeEvent(result);
  if ('unknown' in event) throw new Error(`the client gave ${event.unknown}`);
  return event.event;
}

function taskOf(event: StreamResponse): Task {
  if (!('task' in event)) throw new Error('the client gave no task');
  return event.task;
}

async function* eventsOf(dialect: Dialect, results: AsyncIterable<unknown>): AsyncGenerator<StreamResponse> {
  for await (const result of results) yield decoded(dialect, result);
}

/** 1.3.0; `legacy`: its compatibility layer, which then sees only what a 0.3 agent's card has: of the whole card it takes the interface of 1.0. */
async function openSdk(url: string, legacy: boolean): Promise<Driven> {
  const legacyCompat = { enabled: legacy };
  const transports = [new JsonRpcTransportFactory({ legacyCompat })];
  const fetchImpl: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const { supportedInterfaces: _newer, ...card } = (await response.json()) as Record<string, unknown>;
    return Response.json(card);
  };
  const cardResolver = new DefaultAgentCardResolver({ legacyCompat, ...(legacy && { fetchImpl }) });
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports, cardResolver });
  const client = await new ClientFactory(options).createFromUrl(url);
  if (client.protocolVersion !== (legacy ? '0.3' : '1.0')) throw new Error(`the client speaks ${client.protocolVersion}`);
  const dialect = DIALECTS['1.0'];
  const request = (message: Message) => SendMessageRequest.fromJSON(dialect.encodeSend({ message, blocking: true }));
  const task = (value: SdkTask) => taskOf(decoded(dialect, { task: SdkTask.toJSON(value) }));
  const events = async function* (stream: AsyncIterable<SdkStreamResponse>) {
    for await (const event of stream) yield decoded(dialect, SdkStreamResponse.toJSON(event));
  };
  return {
    agentName: async () => (await client.getAgentCard()).name,
    send: async message => task((await client.sendMessage(request(message))) as SdkTask),
    stream: message => events(client.sendMessageStream(request(message))),
    get: async id => task(await client.getTask({ id, tenant: '' })),
    cancel: async id => task(await client.cancelTask({ id, tenant: '', metadata: undefined })),
    follow: id => events(client.resubscribeTask({ id, tenant: '' })),
  };
}

async function open0314(url: string): Promise<Driven> {
  const client = await new ClientFactory0314().createFromUrl(url);
  const dialect = DIALECTS['0.3'];
  type Params = Parameters<typeof client.sendMessage>[0];
  const params = (message: Message) => dialect.encodeSend({ message, blocking: true }) as unknown as Params;
  const task = (value: unknown) => taskOf(decoded(dialect, value));
  return {
    agentName: async () => (await client.getAgentCard()).name,
    send: async message => task(await client.sendMessage(params(message))),
    stream: message => eventsOf(dialect, client.sendMessageStream(params(message))),
    get: async id => task(await client.getTask({ id })),
    cancel: async id => task(await client.cancelTask({ id })),
    follow: id => eventsOf(dialect, client.resubscribeTask({ id })),
  };
}

/** The form of 0.2 and early 0.3: it hands out JSON-RPC responses. */
function openOlder(client: Client025 | Client034): Driven {
  const dialect = DIALECTS['0.3'];
  type Params = Parameters<Client034['sendMessage']>[0];
  const params = (message: Message) => dialect.encodeSend({ message, blocking: true }) as unknown as Params & never;
  const task = (response: object) => {
    const { result, error } = response as { result?: unknown; error?: { code: number; message: string } };
    if (error !== undefined)
      throw Object.assign(new Error(error.message), { name: JSON_RPC_NAMES[error.code] ?? `${error.code}` });
    return taskOf(decoded(dialect, result));
  };
  return {
    agentName: async () => (await client.getAgentCard()).name,
    send: async message => task(await client.sendMessage(params(message))),
    stream: message => eventsOf(dialect, client.sendMessageStream(params(message))),
    get: async id => task(await client.getTask({ id })),
    cancel: async id => task(await client.cancelTask({ id })),
    follow: id => eventsOf(dialect, client.resubscribeTask({ id })),
  };
}

export const DRIVERS: readonly Driver[] = [
  { name: '@a2a-js/sdk 1.3.0', dialect: '1.0', open: url => openSdk(url, false) },
  { name: '@a2a-js/sdk 1.3.0 as a 0.3 client', dialect: '0.3', open: url => openSdk(url, true) },
  { name: '@a2a-js/sdk 0.3.14', dialect: '0.3', open: open0314 },
  { name: '@a2a-js/sdk 0.3.4', dialect: '0.3', open: async url => openOlder(new Client034(url)) },
  { name: '@a2a-js/sdk 0.2.5', dialect: '0.3', open: async url => openOlder(new Client025(url)) },
];
