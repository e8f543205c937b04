import { failureReason, isTerminal, type Task, textOf } from '@hopline/a2a';
import { parseCursor } from '@hopline/events';
import { explainEvent, reportTask } from '@hopline/task-audit';
import type { FileTask } from './read-tasks.ts';

/** Number of events that are encoded at once, so that a long task costs only as much as the part that the page has read. */
const EVENTS_AT_ONCE = 500;

type ReadableLog = Parameters<typeof reportTask>[0];

/**
 * The paths of ingress that the page reads, answered from the tasks of a file. All pages work without knowing that no server answers them. It has the
 * form of `fetch`.
 */
export function fileApi(tasks: readonly FileTask[]): (path: string, init?: RequestInit) => Promise<Response> {
  const byId = new Map(tasks.map(task => [task.header.taskId, task]));
  return async (path, init) => {
    const { pathname, searchParams } = new URL(path, 'http://file');
    if (pathname === '/api/tasks')
      return json({ tasks: listOf(tasks, searchParams), totalSize: tasks.length, nextPageToken: '' });
    const [, id = '', operation = '', cursor] = /^\/api\/tasks\/([^/:]+)(?:[:/]([^/]+))?(?:\/([^/]+))?$/.exec(pathname) ?? [];
    const found = byId.get(decodeURIComponent(id));
    if (found === undefined) return failure(404, 'the file has no such task');
    switch (operation) {
      case '':
        return json(found.task);
      case 'subscribe':
        return stream(found, new Headers(init?.headers).get('last-event-id') ?? '');
      case 'audit':
        return cursor === undefined ? json(await reportTask(logOf(found), found.header.taskId)) : explanation(found, cursor);
      case 'export':
        return new Response([...exportLines(found)].map(line => `${JSON.stringify(line)}\n`).join(''));
      default:
        return failure(404, 'a file has no such part of a task');
    }
  };
}

function listOf(tasks: readonly FileTask[], query: URLSearchParams): Task[] {
  const [contextId, status] = [query.get('contextId'), query.get('status')];
  const since = Date.parse(query.get('statusTimestampAfter') ?? '');
  const fits = ({ contextId: own, status: { state, timestamp = '' } }: Task) =>
    (contextId === null || contextId === own) &&
    (status === null || status === state) &&
    (Number.isNaN(since) || Date.parse(timestamp) >= since);
  const text = (query.get('text') ?? '').toLowerCase();
  const words = ({ history = [], artifacts = [], status: own, metadata }: Task) =>
    [...history, ...artifacts].map(({ parts }) => textOf(parts)).concat(failureReason(own, metadata));
  return tasks
    .map(({ task }) => task)
    .filter(task => fits(task) && (text === '' || words(task).some(one => one.toLowerCase().includes(text))))
    .toSorted((a, b) => (b.status.timestamp ?? '').localeCompare(a.status.timestamp ?? ''));
}

/** The events after a cursor. A task that had not ended when it was exported has no further events, ever. */
function stream({ events, task }: FileTask, after: string): Response {
  let next = events.findIndex(({ cursor }) => cursor === after) + 1;
  if (next === events.length && !isTerminal(task.status.state))
    return failure(410, 'The file ends here: the task had not ended when it was exported.');
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const batch = events.slice(next, next + EVENTS_AT_ONCE);
      next += batch.length;
      if (batch.length === 0) return controller.close();
      const frames = batch.map(({ cursor, event }) => `id: ${cursor}\ndata: ${JSON.stringify(event)}\n\n`);
      controller.enqueue(encoder.encode(frames.join('')));
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

async function explanation(task: FileTask, text: string): Promise<Response> {
  const cursor = parseCursor(decodeURIComponent(text));
  const explained = cursor && (await explainEvent(logOf(task), task.header.taskId, cursor));
  return explained === undefined ? failure(404, 'the file has no such event') : json(explained);
}

/** The records of the file in the form in which an audit reads them from the log. */
function logOf({ facts, inputs }: FileTask): ReadableLog {
  return {
    facts: {
      last: async () => facts.at(-1),
      async *read() {
        yield* facts;
      },
    },
    inputs: {
      async *read() {
        yield* inputs;
      },
    },
  };
}

function* exportLines({ header, facts }: FileTask) {
  yield header;
  for (const stored of facts) yield { kind: 'facts', ...stored };
  yield { kind: 'end' };
}

const json = (value: unknown) => Response.json(value);
const failure = (status: number, message: string) => Response.json({ error: { message } }, { status });
