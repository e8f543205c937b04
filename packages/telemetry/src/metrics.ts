import { type Meter, metrics } from '@opentelemetry/api';
import { agentLabel, closedWord } from './closed-word.ts';
import { LABEL, METRIC, SCOPE } from './names.ts';

/** Upper edges of the latency buckets, seconds: 0.25 ms times 2^n, up to 65.5 s. */
export const LATENCY_BUCKETS_S: readonly number[] = Array.from({ length: 19 }, (_, n) => 0.00025 * 2 ** n);

/** Labels a caller may give. `agent`: a configured agent's name. `reason`, `kind`: a word of a closed list; anything else becomes `other`. */
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
  /** +1 when one begins, -1 when it is over. */
  add(change: number, labels?: L): void;
}

export interface LatencyOf<L> {
  /** Milliseconds; exported as seconds. Negative values, the clocks of two machines, count as 0. */
  recordMs(ms: number, labels?: L): void;
}

/** Every instrument of every service; those a service does not use export nothing. */
export interface HopMetrics {
  /** Tokens the relay took in. */
  readonly tokensIn: CounterOf<Agent>;
  /** Chunks the relay appended as facts. */
  readonly chunksOut: CounterOf<Agent>;
  /** Bytes read: raw records at the relay, requests at ingress. */
  readonly bytesIn: CounterOf<Agent>;
  /** Bytes written: facts at the relay, frames at ingress. */
  readonly bytesOut: CounterOf<Agent>;
  /** Chunks by why the coalescer let them go. */
  readonly flushes: CounterOf<Agent & Reason>;
  /**
   * What became of the inputs of a relay, by kind, each token counted; `reason` is the outcome. `received` minus all others is what it holds now, and 0 when it is at rest (S2-32).
   */
  readonly inputs: CounterOf<Kind & Reason>;
  /** Inputs that became no fact: duplicate, late attempt, after the end, malformed. */
  readonly inputsRejected: CounterOf<Agent & Reason>;
  /** Work items and inputs that the broker delivered again. */
  readonly redeliveries: CounterOf<Agent>;
  /** Appends refused because another owner had written first. */
  readonly appendConflicts: CounterOf<Reason>;
  /** Work given up after the last allowed delivery. */
  readonly deadLetters: CounterOf<Agent & Reason>;
  /** Streams cut by us: slow viewer, too many, drain. */
  readonly viewersCut: CounterOf<Reason>;
  /** Tasks that reached a terminal state; `reason` is the state. */
  readonly tasksEnded: CounterOf<Agent & Reason>;
  /** Push notifications; `reason` is the outcome. */
  readonly webhookDeliveries: CounterOf<Reason>;
  /** Push notifications that had failed before and were sent again. */
  readonly webhookRetries: CounterOf<Reason>;
  /** Abandoned webhooks; `reason` is the last failure. */
  readonly webhooksAbandoned: CounterOf<Reason>;
  /** SSE streams open now. */
  readonly openStreams: GaugeOf<Reason>;
  /** Tasks worked on now. */
  readonly activeTasks: GaugeOf<Agent>;
  /** Shards this process owns now. */
  readonly ownedShards: GaugeOf<Reason>;
  /** Request received at ingress → supervisor takes the work. */
  readonly ingressToSupervisor: LatencyOf<Agent>;
  /** Supervisor sends the work → agent takes it. */
  readonly supervisorToAgent: LatencyOf<Agent>;
  /** Agent said the token → relay reads it from the log. */
  readonly agentToLog: LatencyOf<Agent>;
  /** Relay reads the oldest token of a chunk → the chunk is appended. */
  readonly relayHold: LatencyOf<Agent>;
  /** Fact appended → written to a client's socket. */
  readonly logToSocket: LatencyOf<Agent>;
  /** Fact appended → a webhook has taken it. */
  readonly logToWebhook: LatencyOf<Agent>;
  /** Agent said the first token of a chunk → written to a client's socket. */
  readonly endToEnd: LatencyOf<Agent>;
  /** Request received → first text on a client's socket. */
  readonly timeToFirstToken: LatencyOf<Agent>;
}

/**
 * Creates the instruments. `service` is added to every point; no key but service, agent, reason and kind is ever passed on.
 * Without telemetry started (unit tests) the default meter records nothing.
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
    tokensIn: counter(METRIC.tokensIn, '{token}', 'Tokens taken in'),
    chunksOut: counter(METRIC.chunksOut, '{chunk}', 'Chunks appended as facts'),
    bytesIn: counter(METRIC.bytesIn, 'By', 'Bytes read'),
    bytesOut: counter(METRIC.bytesOut, 'By', 'Bytes written'),
    flushes: counter(METRIC.flushes, '{chunk}', 'Chunks by the reason they were emitted'),
    inputs: counter(METRIC.inputs, '{input}', 'Inputs by kind and what became of them'),
    inputsRejected: counter(METRIC.inputsRejected, '{input}', 'Inputs that became no fact'),
    redeliveries: counter(METRIC.redeliveries, '{message}', 'Messages delivered again'),
    appendConflicts: counter(METRIC.appendConflicts, '{append}', 'Appends refused by the expected sequence'),
    deadLetters: counter(METRIC.deadLetters, '{message}', 'Work given up after the last delivery'),
    viewersCut: counter(METRIC.viewersCut, '{stream}', 'Streams cut by the server'),
    tasksEnded: counter(METRIC.tasksEnded, '{task}', 'Tasks by terminal state'),
    webhookDeliveries: counter(METRIC.webhookDeliveries, '{notification}', 'Push notifications by outcome'),
    webhookRetries: counter(METRIC.webhookRetries, '{notification}', 'Push notifications tried again'),
    webhooksAbandoned: counter(METRIC.webhooksAbandoned, '{webhook}', 'Webhooks abandoned'),
    openStreams: gauge(METRIC.openStreams, '{stream}', 'SSE streams open now'),
    activeTasks: gauge(METRIC.activeTasks, '{task}', 'Tasks worked on now'),
    ownedShards: gauge(METRIC.ownedShards, '{shard}', 'Shards owned now'),
    ingressToSupervisor: latency(METRIC.ingressToSupervisor, 'Request received to work taken by the supervisor'),
    supervisorToAgent: latency(METRIC.supervisorToAgent, 'Work sent to work taken by the agent'),
    agentToLog: latency(METRIC.agentToLog, 'Token said to token read by the relay'),
    relayHold: latency(METRIC.relayHold, 'Oldest token of a chunk read to chunk appended'),
    logToSocket: latency(METRIC.logToSocket, 'Fact appended to written to a socket'),
    logToWebhook: latency(METRIC.logToWebhook, 'Fact appended to accepted by a webhook'),
    endToEnd: latency(METRIC.endToEnd, 'First token of a chunk said to written to a socket'),
    timeToFirstToken: latency(METRIC.timeToFirstToken, 'Request received to first text on a socket'),
  };
}
