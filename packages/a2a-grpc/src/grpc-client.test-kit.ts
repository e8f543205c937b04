import { Client, type ClientOptions, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { JsonObject } from '@hopline/a2a';
import { clientOf, read } from './procedures.test-kit.ts';
import { SERVICE_0_3, SERVICE_1_0 } from './services.ts';

const SERVICES = { '1.0': SERVICE_1_0, '0.3': SERVICE_0_3 } as const;
type Version = keyof typeof SERVICES;

// biome-ignore lint/suspicious/noExplicitAny: a test reads the members it expects, and fails if they are missing.
type Any = any;

type CallOptions = { version?: Version; metadata?: Record<string, string>; deadline?: number };

/** A failed call: code, message, details of google.rpc.Status. */
export class CallFailed extends Error {
  readonly code: number;
  readonly details: Any[];
  readonly trailers: Metadata;

  constructor(error: ServiceError) {
    super(error.details);
    this.code = error.code;
    this.trailers = error.metadata ?? new Metadata();
    const [bytes] = this.trailers.get('grpc-status-details-bin');
    this.details = bytes === undefined ? [] : ((read('google.rpc.Status', bytes as Buffer).details as Any[]) ?? []);
  }
}

export class GrpcClient {
  readonly #client: Client;

  /** `ca`: use TLS and trust this certificate. */
  constructor(address: string, { ca, ...options }: ClientOptions & { ca?: string } = {}) {
    // Each client has its own connection, because a test could not distinguish clients that share a pool.
    this.#client = new Client(address, ca === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(ca)), {
      'grpc.use_local_subchannel_pool': 1,
      // TLS cannot verify an IP address as a name.
      ...(ca !== undefined && { 'grpc.ssl_target_name_override': 'localhost' }),
      ...options,
    });
  }

  call(name: string, request: unknown, options: CallOptions = {}): Promise<Any> {
    const { path, write, read: readOutput, metadata } = prepared(name, options);
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    this.#client.makeUnaryRequest(path, write, readOutput, request, metadata, callOptions(options), (error, value) => {
      if (error) reject(new CallFailed(error));
      else resolve(value!);
    });
    return promise;
  }

  stream(name: string, request: unknown, options: CallOptions = {}): OpenCall {
    const { path, write, read: readOutput, metadata } = prepared(name, options);
    return new OpenCall(this.#client.makeServerStreamRequest(path, write, readOutput, request, metadata, callOptions(options)));
  }

  close(): void {
    this.#client.close();
  }
}

function callOptions({ deadline }: CallOptions) {
  return deadline === undefined ? {} : { deadline: Date.now() + deadline };
}

function prepared(name: string, { version = '1.0', metadata: more = {} }: CallOptions) {
  const { procedure, write, read: readOutput } = clientOf(SERVICES[version], name);
  const metadata = new Metadata();
  if (version === '1.0') metadata.set('a2a-version', '1.0');
  for (const [key, value] of Object.entries(more)) metadata.set(key, value);
  return { path: procedure.path, write: (json: unknown) => Buffer.from(write(json)), read: readOutput, metadata };
}

/** An open stream: read events one by one, or all. */
class OpenCall {
  readonly call: ReturnType<Client['makeServerStreamRequest']>;
  readonly headers: Promise<Metadata>;
  readonly trailers: Promise<Metadata>;
  readonly #events: AsyncIterator<Any>;

  constructor(call: ReturnType<Client['makeServerStreamRequest']>) {
    this.call = call;
    this.headers = new Promise(resolve => call.once('metadata', resolve));
    this.trailers = new Promise(resolve => call.once('status', status => resolve(status.metadata)));
    this.#events = call[Symbol.asyncIterator]();
  }

  async next(): Promise<Any | undefined> {
    try {
      const { done, value } = await this.#events.next();
      return done === true ? undefined : value;
    } catch (error) {
      throw new CallFailed(error as ServiceError);
    }
  }

  async take(count: number): Promise<Any[]> {
    const events: Any[] = [];
    while (events.length < count) {
      const event = await this.next();
      if (event === undefined) return events;
      events.push(event);
    }
    return events;
  }

  rest(): Promise<Any[]> {
    return this.take(Number.POSITIVE_INFINITY);
  }

  /** Reads to the end and returns the failure. */
  async failure(): Promise<CallFailed> {
    try {
      await this.rest();
    } catch (error) {
      return error as CallFailed;
    }
    throw new Error('the stream ended well');
  }
}

/** One word per event: task, working, completed, …, `=text` (begins), `+text` (appends). */
export function shape(events: Any[]): string[] {
  const stateOf = (status: Any) => status.state.replace('TASK_STATE_', '').toLowerCase();
  return events.map(({ task, message, statusUpdate, artifactUpdate }) => {
    if (task) return `task ${stateOf(task.status)}`;
    if (message) return 'message';
    if (statusUpdate) return stateOf(statusUpdate.status);
    const text = artifactUpdate.artifact.parts.map((part: Any) => part.text).join('');
    return `${artifactUpdate.append ? '+' : '='}${text}`;
  });
}

export function userMessage(text: string, more: JsonObject = {}): JsonObject {
  return { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more };
}
