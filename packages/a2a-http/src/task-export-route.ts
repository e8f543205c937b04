import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { A2AError } from '@hopline/a2a';
import { type A2AServer, fromLog, partyOf, report, requireOwnTask } from '@hopline/a2a-server';
import type { Owner } from '@hopline/events';
import type { FastifyInstance } from 'fastify';
import { callerWithRoom } from './hopline-route.ts';
import { readInTime } from './reading-time.ts';
import { sendRestError } from './rest/rest-binding.ts';

export const TASK_EXPORT_PATH = '/tasks/{taskId}/export';

/**
 * Exports that run at the same time in this process; further ones get 503 with Retry-After. All callers of a tenant together may run one of
 * them, and get 429 for a second one, because they must not block others. Without authentication all clients are one caller, which may use
 * every place.
 */
export const EXPORTS_AT_ONCE_MAX = 2;

/** The query of an export as it was sent. `after`: the cursor after which an interrupted export continues. */
type ExportQuery = { records: string | undefined; after: string | undefined };
/** The lines of a task file. Resolves with undefined for an unknown task. May throw A2AError and errors of the log. */
export type ExportTask = (taskId: string, query: ExportQuery) => Promise<AsyncIterable<string> | undefined>;

/**
 * GET `/tasks/{taskId}/export` streams the task as a file to its owner. If the log fails within the response, the connection is cut: the
 * file then lacks its end, and the client asks for the rest.
 */
export function registerTaskExport(scope: FastifyInstance, server: A2AServer, exportTask: ExportTask): void {
  const running = new RunningExports(server);
  const open = async (
    caller: Owner,
    taskId: string,
    query: ExportQuery,
    response: ServerResponse,
  ): Promise<AsyncIterable<string>> => {
    running.add(caller);
    try {
      const lines = await exportTask(taskId, query);
      // Retention has removed the task since its owner was checked.
      if (lines === undefined) throw new A2AError('TASK_NOT_FOUND');
      const iterator = lines[Symbol.asyncIterator]();
      // Read the first line before the response begins, so that an unreadable log is an error of the request rather than a broken response.
      const budget = server.quotas.sentBudget(caller);
      return withFirst(await iterator.next(), iterator, async line => {
        await budget?.pace(() => response.destroyed);
        server.quotas.countSent(caller, Buffer.byteLength(line));
      });
    } catch (thrown) {
      running.remove(caller);
      throw fromLog(thrown, taskId);
    }
  };
  scope.get<{ Params: { taskId: string }; Querystring: Record<string, unknown> }>(
    TASK_EXPORT_PATH.replace('{taskId}', ':taskId'),
    // HEAD would read a task and send nothing of it.
    { exposeHeadRoute: false },
    async (request, reply) => {
      const { taskId } = request.params;
      const failed = (thrown: unknown): A2AError => {
        const error = A2AError.from(thrown);
        report(server, error, { method: 'export_task', headers: request.headers, taskId });
        return error;
      };
      try {
        const caller = await callerWithRoom(server, request);
        await requireOwnTask(server, caller, taskId);
        const { records, after } = request.query;
        const lines = await open(
          caller,
          taskId,
          { records: queryValue('records', records), after: queryValue('after', after) },
          reply.raw,
        );
        const body = Readable.from(readInTime(lines, server.limits.exportReadMsMax, () => reply.raw.destroy()));
        // Also runs when the client disconnects before the end, because Fastify destroys the stream.
        body.once('close', () => running.remove(caller));
        // The response has begun, so only the log and the metrics of this server can name the cause.
        body.once('error', thrown => failed(fromLog(thrown, taskId)));
        // The time without progress (`viewerStallMsMax`) counts only while the client does not read, not while the log is read.
        reply.raw.on('timeout', () => {
          if (reply.raw.writableLength > 0) reply.raw.destroy();
        });
        return reply.type('application/jsonl; charset=utf-8').header('cache-control', 'no-store').send(body);
      } catch (thrown) {
        return sendRestError(request, reply, failed(thrown));
      }
    },
  );
}

/** The exports that are running in this process, at most EXPORTS_AT_ONCE_MAX. */
class RunningExports {
  readonly #server: A2AServer;
  readonly #parties: (string | undefined)[] = [];

  constructor(server: A2AServer) {
    this.#server = server;
  }

  /** Throws QUOTA_EXCEEDED or UNAVAILABLE. */
  add(caller: Owner): void {
    const party = partyOf(caller);
    if (party !== undefined && this.#parties.includes(party)) {
      this.#server.quotas.countRefusal(caller, 'exports');
      throw new A2AError('QUOTA_EXCEEDED', {
        detail: 'an export of this caller or its tenant is running; retry when it has ended',
      });
    }
    if (this.#parties.length >= EXPORTS_AT_ONCE_MAX)
      throw new A2AError('UNAVAILABLE', { detail: `${EXPORTS_AT_ONCE_MAX} exports are running; retry later` });
    this.#parties.push(party);
  }

  remove(caller: Owner): void {
    this.#parties.splice(this.#parties.indexOf(partyOf(caller)), 1);
  }
}

/**
 * Yields `first` and then the rest, each after `pace`. Reading the log ends when the client disconnects, even before it has read anything.
 */
function withFirst(
  first: IteratorResult<string>,
  rest: AsyncIterator<string>,
  pace: (line: string) => Promise<void>,
): AsyncIterable<string> {
  let next: IteratorResult<string> | undefined = first;
  const iterator: AsyncIterator<string> = {
    next: async () => {
      const line = next ?? (await rest.next());
      next = undefined;
      if (line.done !== true) await pace(line.value);
      return line;
    },
    return: async () => (await rest.return?.()) ?? { done: true, value: undefined },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

function queryValue(name: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw new A2AError('INVALID_PARAMS', { detail: `the query must not repeat ${name}` });
}
