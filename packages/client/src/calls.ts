import { A2AError, isObject, type JsonObject, type Message, type Operation, type Task } from '@hopline/a2a/client';
import { AGENTS_PATH, decodeAgents, type ListedAgent } from './agents.ts';
import { FailedTry } from './failed-try.ts';
import type { ClientLimits } from './limits.ts';
import type { CallOptions } from './notice.ts';
import { parseJson } from './parse-json.ts';
import { type BodyOptions, bodyText, chunksOf } from './read-body.ts';
import { notA2A, type RequestOptions, resultOf, type Transport } from './transport.ts';
import { pause, type RetryLimits, Tries } from './tries.ts';

/** One page of `list`, newest status first. */
export type TaskPage = {
  tasks: Task[];
  /** Absent on the last page. */
  nextPageToken?: string;
  /** Number of tasks on all pages, if the server knows it. */
  totalSize?: number;
};

/** Options of `export`. */
export type ExportOptions = CallOptions & {
  /** `inputs`, `facts` or `inputs,facts`; default: both. */
  records?: string | undefined;
  /** Position at which an interrupted export continues (`encodeProgress` of @hopline/task-file). */
  after?: string | undefined;
};

/** Operations with a single response, with retries. */
export class Calls {
  readonly #transport: Transport;
  readonly #limits: ClientLimits;
  readonly #retry: RetryLimits;

  constructor(transport: Transport, limits: ClientLimits, retry: RetryLimits) {
    this.#transport = transport;
    this.#limits = limits;
    this.#retry = retry;
  }

  async send(
    params: JsonObject,
    call: CallOptions & { blocking?: boolean | undefined },
  ): Promise<{ task: Task } | { message: Message }> {
    const { callMsMax, sendMsMax } = this.#limits;
    const endMs = performance.now() + sendMsMax;
    const result =
      call.blocking === false
        ? await this.#withRetries(call, () => this.#post('send', params, call, callMsMax))
        : await this.#withRetries(call, () => this.#post('send', params, call, Math.ceil(endMs - performance.now())), endMs);
    const decoded = this.#transport.dialect.decodeEvent(result);
    if ('event' in decoded && ('task' in decoded.event || 'message' in decoded.event)) return decoded.event;
    throw notA2A('the response is neither a task nor a message').error;
  }

  async get(params: JsonObject, call: CallOptions): Promise<Task> {
    return this.#withRetries(call, () => this.getOnce(params, call));
  }

  /** Throws FailedTry. */
  async getOnce(params: JsonObject, call: CallOptions): Promise<Task> {
    return this.#taskOf(await this.#post('get', params, call, this.#limits.callMsMax));
  }

  async list(params: JsonObject, call: CallOptions): Promise<TaskPage> {
    if (this.#transport.dialect.methods.list === undefined)
      throw new A2AError('UNSUPPORTED_OPERATION', { detail: 'dialect 0.3 cannot list tasks' });
    return this.#withRetries(call, async () => this.#pageOf(await this.#post('list', params, call, this.#limits.callMsMax)));
  }

  async cancel(taskId: string, call: CallOptions): Promise<Task> {
    let tries = 0;
    return this.#withRetries(call, async () => {
      tries += 1;
      try {
        return this.#taskOf(await this.#post('cancel', { id: taskId }, call, this.#limits.callMsMax));
      } catch (thrown) {
        if (tries === 1 || !(thrown instanceof FailedTry) || thrown.error.code !== 'TASK_NOT_CANCELABLE') throw thrown;
        // An earlier try, whose response was lost, may have canceled the task.
        const task = await this.getOnce({ id: taskId }, call);
        if (task.status.state !== 'TASK_STATE_CANCELED') throw thrown;
        return task;
      }
    });
  }

  /** Reads something else from the server, with retries. */
  async read<T>(call: CallOptions, once: (transport: Transport, options: RequestOptions) => Promise<T>): Promise<T> {
    const request = { signal: call.signal, headMsMax: this.#limits.callMsMax };
    return this.#withRetries(call, () => once(this.#transport, request));
  }

  async agents(call: CallOptions): Promise<ListedAgent[]> {
    const json = await this.#document(AGENTS_PATH, 'the server does not list its agents', call);
    return decodeAgents(json);
  }

  async audit(taskId: string, call: CallOptions): Promise<JsonObject> {
    const path = `/tasks/${encodeURIComponent(taskId)}/audit`;
    const json = await this.#document(path, 'the server does not serve audits', call);
    if (!isObject(json)) throw notA2A('the response is not an audit').error;
    return json;
  }

  async *export(taskId: string, { records, after, ...call }: ExportOptions): AsyncGenerator<Uint8Array, void> {
    const url = new URL(`/tasks/${encodeURIComponent(taskId)}/export`, this.#transport.url);
    if (records !== undefined) url.searchParams.set('records', records);
    if (after !== undefined) url.searchParams.set('after', after);
    const { body } = await this.#own(url, 'the server does not export tasks', call);
    try {
      if (body !== null) yield* chunksOf(body, this.#body(call));
    } catch (thrown) {
      call.signal?.throwIfAborted();
      throw thrown instanceof FailedTry ? thrown.error : thrown;
    }
  }

  async explain(taskId: string, cursor: string, call: CallOptions): Promise<JsonObject> {
    const path = `/tasks/${encodeURIComponent(taskId)}/audit/${encodeURIComponent(cursor)}`;
    const json = await this.#document(path, 'the server does not explain events', call);
    if (!isObject(json)) throw notA2A('the response is not an explanation').error;
    return json;
  }

  /** Reads a JSON document outside A2A that only Hopline servers have. */
  async #document(path: string, absent: string, call: CallOptions): Promise<unknown> {
    return this.#withRetries(call, async () => {
      const response = await this.#ownOnce(new URL(path, this.#transport.url), absent, call);
      return parseJson(await bodyText(response, this.#body(call)));
    });
  }

  /** Requests a resource outside A2A that only Hopline has. The body of the response is not read yet. */
  #own(url: URL, absent: string, call: CallOptions): Promise<Response> {
    return this.#withRetries(call, () => this.#ownOnce(url, absent, call));
  }

  async #ownOnce(url: URL, absent: string, { signal }: CallOptions): Promise<Response> {
    return this.#transport.get(url, { signal, headMsMax: this.#limits.callMsMax }).catch((thrown: unknown) => {
      if (!(thrown instanceof FailedTry) || thrown.status !== 404 || thrown.error.code !== 'INVALID_AGENT_RESPONSE') throw thrown;
      throw new FailedTry(new A2AError('UNSUPPORTED_OPERATION', { detail: absent }));
    });
  }

  /** `endMs`: for a call that waits for an agent, when to stop, by `performance.now()`. */
  async #withRetries<T>(call: CallOptions, once: () => Promise<T>, endMs?: number): Promise<T> {
    const tries = new Tries(this.#retry);
    for (;;) {
      const beganMs = performance.now();
      try {
        return await once();
      } catch (thrown) {
        const nowMs = performance.now();
        if (endMs !== undefined && thrown instanceof FailedTry) {
          call.signal?.throwIfAborted();
          if (nowMs >= endMs) throw thrown.error;
          // The server was at work. Proxies, and `fetch` in Node after five minutes, end a response that has no bytes for long.
          if (nowMs - beganMs >= this.#limits.callMsMax) tries.progress();
        }
        await pause(tries, thrown, call);
      }
    }
  }

  async #post(operation: Operation, params: JsonObject, call: CallOptions, headMsMax: number): Promise<unknown> {
    const { signal, traceparent } = call;
    const response = await this.#transport.post(operation, params, { signal, headMsMax, traceparent });
    return resultOf(response, this.#body(call));
  }

  #body({ signal }: CallOptions): BodyOptions {
    return { silenceMsMax: this.#limits.silenceMsMax, signal };
  }

  /** Throws FailedTry. */
  #pageOf(page: unknown): TaskPage {
    if (!isObject(page) || !Array.isArray(page.tasks)) throw notA2A('the response is not a page of tasks');
    const { nextPageToken, totalSize } = page;
    return {
      tasks: page.tasks.map(task => this.#taskOf(task)),
      ...(typeof nextPageToken === 'string' && nextPageToken !== '' && { nextPageToken }),
      ...(typeof totalSize === 'number' && { totalSize }),
    };
  }

  /** In 1.0 this result is a bare task, whereas a task in an event is wrapped. Throws FailedTry. */
  #taskOf(result: unknown): Task {
    const { dialect } = this.#transport;
    const decoded = dialect.decodeEvent(dialect.name === '1.0' ? { task: result } : result);
    if ('event' in decoded && 'task' in decoded.event) return decoded.event.task;
    throw notA2A('the response is not a task');
  }
}
