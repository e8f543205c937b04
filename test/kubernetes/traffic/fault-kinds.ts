/**
 * The faults of the traffic, as data: what a fault may cost clients, and which alerts it explains. An alert that no fault explains is wrong, or shows a defect.
 */

type Explained = {
  /** Why the alert is right. */
  because: string;
  /** How long after the end of the fault it may still start; WITHIN_MS by default. */
  withinMs?: number;
};

export type FaultKind = {
  name: string;
  /** Length on two cores, for the decision whether it still fits. */
  seconds: number;
  /** Failed requests that clients may see. Refusals with Retry-After are not failures. Default: none. */
  permits?: { failures: RegExp; because: string };
  alerts: Readonly<Record<string, Explained>>;
};

/** Two scrapes and an evaluation. */
export const WITHIN_MS = 60_000;
const MINUTE_MS = 60_000;

const PAUSES: FaultKind['alerts'] = {
  HoplineTextLate: { because: 'text pauses while its process is replaced', withinMs: 5 * MINUTE_MS },
  HoplineFirstTokenLate: { because: 'questions wait while processes are replaced', withinMs: 5 * MINUTE_MS },
};
const DEATH: FaultKind['alerts'] = {
  ...PAUSES,
  HoplineProcessDown: { because: 'the process was killed, and Kubernetes waits before it restarts one that ended several times' },
};
const REFUSALS: FaultKind['alerts'] = {
  HoplineRequestsFail: { because: 'new messages are refused', withinMs: 5 * MINUTE_MS },
};
/** A rolling update of NATS, which the image of another version causes as well. */
const HEARTBEATS: FaultKind['alerts'] = {
  HoplineOwnersLost: { because: 'heartbeats do not arrive while their node restarts', withinMs: 2 * MINUTE_MS },
};
/** A killed ingress cannot answer what it had accepted, and its Service names it until Kubernetes notices. */
const CUT = {
  failures: /: (ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET|EHOSTUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/,
  because: 'the connection ends with the process; the client sends the same message again',
};

export const FAULT_KINDS = {
  agent: {
    name: 'an agent comes, is asked and goes',
    seconds: 90,
    alerts: {
      HoplineAgentGone: { because: 'the agent was removed', withinMs: 7 * MINUTE_MS },
      HoplineProcessesMissing: { because: 'half of the agents were removed', withinMs: 12 * MINUTE_MS },
    },
  },
  drain: { name: 'drain: every pod is evicted', seconds: 270, alerts: { ...PAUSES, ...REFUSALS } },
  upgrade: {
    name: 'helm upgrade of all services',
    seconds: 100,
    alerts: { ...PAUSES, ...REFUSALS, ...HEARTBEATS },
  },
  nats: {
    name: 'rolling restart of NATS',
    seconds: 120,
    alerts: {
      ...PAUSES,
      HoplineShardRestarts: { because: 'a pause of NATS restarts every shard', withinMs: MINUTE_MS },
      ...HEARTBEATS,
    },
  },
  certificates: { name: 'every certificate is replaced', seconds: 130, alerts: {} },
  full: {
    name: 'the work stream is full',
    seconds: 80,
    alerts: {
      ...PAUSES,
      ...REFUSALS,
      HoplineLogShortage: { because: 'a write was refused for lack of room' },
      HoplineNatsNearlyFull: { because: 'the work stream holds more than 85 % of its bytes' },
    },
  },
  volume: {
    name: 'the volume of one NATS node is full',
    seconds: 420,
    alerts: {
      ...PAUSES,
      ...REFUSALS,
      HoplineWritesFail: { because: 'the node leads streams and cannot store' },
      HoplineLogShortage: { because: 'a write was refused for lack of room' },
      HoplineNatsUnhealthy: { because: 'a stream of the node cannot store until the node restarts' },
      HoplineProcessDown: { because: 'Kubernetes restarts the node, and its metrics with it' },
      HoplineShardRestarts: { because: 'the leaders of streams change' },
    },
  },
  relay: {
    name: 'a relay is killed',
    seconds: 30,
    alerts: { ...DEATH, HoplineOwnersLost: { because: 'another relay took its shards', withinMs: 2 * MINUTE_MS } },
  },
  supervisor: { name: 'a supervisor is killed', seconds: 30, alerts: DEATH },
  subAgent: { name: 'a process of the agent is killed', seconds: 30, alerts: DEATH },
  ingress: { name: 'an ingress is killed', seconds: 30, permits: CUT, alerts: { ...DEATH, ...REFUSALS } },
} as const satisfies Record<string, FaultKind>;

export type FaultName = keyof typeof FAULT_KINDS;

export const FAULT_NAMES = Object.keys(FAULT_KINDS) as FaultName[];
