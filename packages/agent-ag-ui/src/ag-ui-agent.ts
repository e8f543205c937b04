import { A2AError, decodeSseBatches, isObject, type JsonObject, SSE_CONTENT_TYPE, type SseEvent } from '@hopline/a2a';
import { AbortableEvents, type Agent, type AgentEvent, eventsOf, type Turn } from '@hopline/agent';
import { boundedFetch, type DeadlineLimits, Deadlines, type MissedDeadline } from '@hopline/outbound-http';
import { RunFault } from './run-fault.ts';
import { resumeOf, runInputOf } from './run-input.ts';
import { RunReader } from './run-reader.ts';

export type AgUiAgentOptions = {
  /** URL that takes the input of a run. */
  url: string;
  /** Sent with every request. */
  headers?: Readonly<Record<string, string>>;
  description?: string;
  limits?: Partial<DeadlineLimits>;
};

const AG_UI_LIMITS: DeadlineLimits = { firstEventMsMax: 60_000, silenceMsMax: 300_000, totalMsMax: 3_600_000 };

/** Follows no redirects and does not retry, because a run may have begun even if its connection broke. The decoder bounds events one by one. */
const fetchRun = boundedFetch({ redirectsMax: 0, freshConnections: true, bytesMax: 1, boundedMethods: [] });

/** An agent behind a server of AG-UI. It is not contacted before its first turn. */
export function createAgUiAgent(options: AgUiAgentOptions): Agent {
  const { description = 'An agent that speaks AG-UI.' } = options;
  const runBatches = (turn: Turn) => runWithLimits(options, turn);
  return {
    description,
    skills: async () => [{ id: 'chat', name: 'Chat', description, tags: ['ag-ui'] }],
    run: turn => eventsOf(runBatches(turn)),
    runBatches,
    close: async () => {},
  };
}

async function* runWithLimits(options: AgUiAgentOptions, turn: Turn): AsyncGenerator<readonly AgentEvent[]> {
  using deadlines = new Deadlines({ ...AG_UI_LIMITS, ...options.limits }, faultOf, turn.signal);
  const { signal } = deadlines;
  try {
    const run = () => runTurn(options, { ...turn, signal }, () => deadlines.touch());
    for await (const events of new AbortableEvents(run, signal)) {
      deadlines.pause();
      yield events;
      deadlines.resume();
    }
    if (deadlines.fault !== undefined) throw deadlines.fault;
  } catch (error) {
    if (turn.signal.aborted) return;
    const fault = deadlines.fault ?? error;
    if (!(fault instanceof RunFault)) throw error;
    if (fault.cause !== undefined) turn.showError?.(fault.cause);
    yield [{ type: 'failed', reason: fault.message, retryable: fault.retryable, cause: 'run_failed' }];
  }
}

function faultOf({ limit, ms }: MissedDeadline): RunFault {
  const reason = limit === 'total' ? 'the turn took longer than' : 'the AG-UI server sent no event for';
  return new RunFault(`${reason} ${ms / 1000} s`, false);
}

async function* runTurn(options: AgUiAgentOptions, turn: Turn, onEvent: () => void): AsyncGenerator<AgentEvent[]> {
  const reader = new RunReader(turn.message.messageId, resumeOf(turn.resume).state);
  for await (const frames of await begin(options, turn)) {
    onEvent();
    const events: AgentEvent[] = [];
    try {
      for (const { data } of frames) for (const event of reader.read(eventIn(data))) events.push(event);
    } finally {
      // Events that arrived before an error are yielded before it.
      if (events.length > 0) yield events;
    }
    if (reader.ended) return;
  }
  throw new RunFault('the stream of the AG-UI server ended without the end of its run', true);
}

/** Leaving the events closes the connection, by which AG-UI cancels a run. */
async function begin({ url, headers }: AgUiAgentOptions, turn: Turn): Promise<AsyncIterable<SseEvent[]>> {
  const { trace, signal } = turn;
  const own = { ...trace, 'content-type': 'application/json', accept: SSE_CONTENT_TYPE };
  const body = JSON.stringify(runInputOf(turn));
  const response = await fetchRun(url, { method: 'POST', headers: { ...headers, ...own }, body, signal }).catch(cause => {
    throw new RunFault('the AG-UI server cannot be reached', true, { cause });
  });
  const { status } = response;
  if (response.ok && response.body !== null && response.headers.get('content-type')?.startsWith(SSE_CONTENT_TYPE))
    return framesOf(response.body, signal);
  await response.body?.cancel();
  if (response.ok) throw new RunFault('the AG-UI server answered with something other than an event stream', false);
  const retryable = status >= 500 || status === 429 || status === 408;
  throw new RunFault(`the AG-UI server answered with status ${status}`, retryable);
}

async function* framesOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<SseEvent[]> {
  try {
    yield* decodeSseBatches(body as unknown as AsyncIterable<Uint8Array>);
  } catch (cause) {
    if (signal.aborted) throw cause;
    if (cause instanceof A2AError) throw new RunFault('an event of the AG-UI server is too large', false, { cause });
    throw new RunFault('the stream of the AG-UI server broke', true, { cause });
  }
}

function eventIn(data: string): JsonObject {
  let event: unknown;
  try {
    event = JSON.parse(data);
  } catch (cause) {
    throw new RunFault('an event of the AG-UI server is not JSON', false, { cause });
  }
  if (!isObject(event)) throw new RunFault('an event of the AG-UI server is not an object', false);
  return event;
}
