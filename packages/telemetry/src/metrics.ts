import { type Meter, metrics } from '@opentelemetry/api';
import { agentLabel, closedWord } from './closed-word.ts';
import { LABEL, METRIC, SCOPE } from './names.ts';

/** Upper bounds of the latency buckets: 0.25 ms times 2^n, up to 65.5 s; seconds. */
export const LATENCY_BUCKETS_S: readonly number[] = Array.from({ length: 19 }, (_, n) => 0.00025 * 2 ** n);

/** `agent`: the name of a configured agent. `reason`, `kind`: a word of a closed list. Any other value becomes `other`. */
export interface Labels {
  readonly agent?: string | undefined;
  readonly reason?: string | undefined;
  readonly kind?: string | undefined;
}
type Agent = Pick<Labels, 'agent'>;
type Reason = Pick<Labels, 'reason'>;
type Kind = Pick<Labels, 'kind'>;

export interface CounterOf<L> {
  /** `n` >= 0. */
  add(n: number, labels?: L): void;
}

export interface GaugeOf<L> {
  /** +1 at the start, -1 at the end. */
  add(change: number, labels?: L): void;
}

export interface LatencyOf<L> {
  /** Milliseconds; exported as seconds. Negative values (two machines with different clocks) count as 0. */
  recordMs(ms: number, labels?: L): void;
}

/** The instruments of all services. An instrument without a value exports nothing. */
export interface HopMetrics {
  /** Tokens that the relay read. */
  readonly tokensIn: CounterOf<Agent>;
  /** Chunks that the relay appended as facts. */
  readonly chunksOut: CounterOf<Agent>;
  /** Bytes read: input records at the relay, requests at ingress. */
  readonly bytesIn: CounterOf<Agent>;
  /** Bytes written: facts at the relay, frames at ingress. */
  readonly bytesOut: CounterOf<Agent>;
  /** Chunks by the reason for which the coalescer flushed them. */
  readonly flushes: CounterOf<Agent & Reason>;
  /**
   * Inputs of a relay by kind and outcome (`reason`); each token counts as one. `received` minus all other reasons is what the relay
   * holds now: 0 at rest.
   */
  readonly inputs: CounterOf<Kind & Reason>;
  /** Rejected inputs: duplicate, late attempt, after the end, malformed. */
  readonly inputsRejected: CounterOf<Agent & Reason>;
  /** Stored input records that a relay skipped, or whose task it failed because it could not apply them. */
  readonly recordsRejected: CounterOf<Reason>;
  /** Work items and inputs that the broker redelivered. */
  readonly redeliveries: CounterOf<Agent>;
  /** Appends rejected because another owner had written first. */
  readonly appendConflicts: CounterOf<Reason>;
  /** Work items without success after the last allowed delivery. */
  readonly deadLetters: CounterOf<Agent & Reason>;
  /** Streams closed by the server: slow viewer, too many streams, drain. */
  readonly viewersCut: CounterOf<Reason>;
  /** Requests refused by a limit of their caller or its tenant; `reason` is the limit. */
  readonly requestsRefused: CounterOf<Reason>;
  /** Tasks that reached a terminal state; `reason` is the state. */
  readonly tasksEnded: CounterOf<Agent & Reason>;
  /** Push notifications; `reason` is the outcome. */
  readonly webhookDeliveries: CounterOf<Reason>;
  /** Push notifications that were sent again after a failure. */
  readonly webhookRetries: CounterOf<Reason>;
  /** Webhooks that receive no further notifications: `reason` is the last failure. */
  readonly webhooksAbandoned: CounterOf<Reason>;
  /** Writes that a full stream refused, and checks that found one nearly full or removing by bytes; `kind` is the stream. */
  readonly logShortages: CounterOf<Kind & Reason>;
  /** Open SSE streams. */
  readonly openStreams: GaugeOf<Reason>;
  /** Tasks in progress. */
  readonly activeTasks: GaugeOf<Agent>;
  /** Shards that this process owns. */
  readonly ownedShards: GaugeOf<Reason>;
  /** Request received at ingress → work item received by the supervisor. */
  readonly ingressToSupervisor: LatencyOf<Agent>;
  /** Work item published by the supervisor → received by the agent. */
  readonly supervisorToAgent: LatencyOf<Agent>;
  /** Token created by the agent → read from the log by the relay. */
  readonly agentToLog: LatencyOf<Agent>;
  /** Oldest token of a chunk read by the relay → chunk appended. */
  readonly relayHold: LatencyOf<Agent>;
  /** Fact appended → written to a client's socket. */
  readonly logToSocket: LatencyOf<Agent>;
  /** Fact appended → accepted by a webhook. */
  readonly logToWebhook: LatencyOf<Agent>;
  /** First token of a chunk created by the agent → written to a client's socket. */
  readonly endToEnd: LatencyOf<Agent>;
  /** Request received → first text on a client's socket. */
  readonly timeToFirstToken: LatencyOf<Agent>;
}

/**
 * Creates the instruments. Every point has the label `service`; only `agent`, `reason` and `kind` are passed on from a caller.
 * Before startTelemetry (in unit tests) the default meter records nothing.
 */
export function createHopMetrics(service: string, meter: Meter = metrics.getMeter(SCOPE)): HopMetrics {
  const point = (labels: Labels = {}) => ({
    [LABEL.service]: service,
    ...(labels.agent === undefined ? {} : { [LABEL.agent]: agentLabel(labels.agent) }),
    ...(labels.reason === undefined ? {} : { [LABEL.reason]: closedWord(labels.reason) }),
    ...(labels.kind === undefined ? {} : { [LABEL.kind]: closedWord(labels.kind) }),
  });
  const counter = (name: string, unit: string, description: string): CounterOf<Labels> => {
    const instrument = meter.createCounter(name, { unit, description });
    return { add: (n, labels) => instrument.add(n, point(labels)) };
  };
  const gauge = (name: string, unit: string, description: string): GaugeOf<Labels> => {
    const instrument = meter.createUpDownCounter(name, { unit, description });
    return { add: (change, labels) => instrument.add(change, point(labels)) };
  };
  const latency = (name: string, description: string): LatencyOf<Labels> => {
    const advice = { explicitBucketBoundaries: [...LATENCY_BUCKETS_S] };
    const instrument = meter.createHistogram(name, { unit: 's', description, advice });
    return { recordMs: (ms, labels) => instrument.record(Math.max(0, ms) / 1000, point(labels)) };
  };
  return {
    tokensIn: counter(METRIC.tokensIn, '{token}', 'Tokens read'),
    chunksOut: counter(METRIC.chunksOut, '{chunk}', 'Chunks appended as facts'),
    bytesIn: counter(METRIC.bytesIn, 'By', 'Bytes read'),
    bytesOut: counter(METRIC.bytesOut, 'By', 'Bytes written'),
    flushes: counter(METRIC.flushes, '{chunk}', 'Chunks by reason of the flush'),
    inputs: counter(METRIC.inputs, '{input}', 'Inputs by kind and outcome'),
    inputsRejected: counter(METRIC.inputsRejected, '{input}', 'Rejected inputs'),
    recordsRejected: counter(METRIC.recordsRejected, '{record}', 'Stored input records that a relay could not read or apply'),
    redeliveries: counter(METRIC.redeliveries, '{message}', 'Messages redelivered'),
    appendConflicts: counter(METRIC.appendConflicts, '{append}', 'Appends rejected by the expected sequence'),
    deadLetters: counter(METRIC.deadLetters, '{message}', 'Work items without success after the last delivery'),
    viewersCut: counter(METRIC.viewersCut, '{stream}', 'Streams closed by the server'),
    requestsRefused: counter(METRIC.requestsRefused, '{request}', 'Requests refused by a limit of their caller or tenant'),
    tasksEnded: counter(METRIC.tasksEnded, '{task}', 'Tasks by terminal state'),
    webhookDeliveries: counter(METRIC.webhookDeliveries, '{notification}', 'Push notifications by outcome'),
    webhookRetries: counter(METRIC.webhookRetries, '{notification}', 'Push notifications sent again'),
    webhooksAbandoned: counter(METRIC.webhooksAbandoned, '{webhook}', 'Webhooks abandoned'),
    logShortages: counter(METRIC.logShortages, '{event}', 'Streams without room, by stream and event'),
    openStreams: gauge(METRIC.openStreams, '{stream}', 'Open SSE streams'),
    activeTasks: gauge(METRIC.activeTasks, '{task}', 'Tasks in progress'),
    ownedShards: gauge(METRIC.ownedShards, '{shard}', 'Shards owned'),
    ingressToSupervisor: latency(METRIC.ingressToSupervisor, 'Request received to work item received by the supervisor'),
    supervisorToAgent: latency(METRIC.supervisorToAgent, 'Work item published to received by the agent'),
    agentToLog: latency(METRIC.agentToLog, 'Token created to read by the relay'),
    relayHold: latency(METRIC.relayHold, 'Oldest token of a chunk read to chunk appended'),
    logToSocket: latency(METRIC.logToSocket, 'Fact appended to written to a socket'),
    logToWebhook: latency(METRIC.logToWebhook, 'Fact appended to accepted by a webhook'),
    endToEnd: latency(METRIC.endToEnd, 'First token of a chunk created to written to a socket'),
    timeToFirstToken: latency(METRIC.timeToFirstToken, 'Request received to first text on a socket'),
  };
}
