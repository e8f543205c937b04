import { isTerminal } from '@hopline/a2a';
import type { TaskIndexEntry } from '@hopline/log';
import type { AgentScript } from '../support/agents/scripted-agent.ts';
import type { Violation } from '../support/task-promises.ts';
import { AgentRuns } from './agent-runs.ts';
import { Client, type TaskPlan } from './client.ts';
import { Cluster } from './cluster.ts';
import { Coverage } from './coverage.ts';
import { endOfFaults, schedule } from './faults.ts';
import { MemoryServers } from './memory-servers.ts';
import { Random } from './random.ts';
import type { Scenario } from './scenario.ts';
import { type Situation, Situations } from './situations.ts';
import { Trace } from './trace.ts';
import { undeliveredOf, verify } from './verify.ts';
import { VirtualClock } from './virtual-clock.ts';
import { WebhookReceiver } from './webhook-receiver.ts';

/**
 * Everything must have ended within twice the time that its agents work plus this, counted from the last fault and the last start of a
 * client, in milliseconds of the run.
 */
const LIVENESS_MS_MAX = 60_000;
/** How long the cluster continues after everything has ended; nothing may happen in that time. */
const REST_MS = 1_000;
const CHECK_MS = 250;

export type Run = {
  violations: Violation[];
  /** Digest of every event; equal for two runs of one scenario. */
  digest: string;
  lines: readonly string[];
  /** Length of the run, virtual milliseconds. */
  endedAt: number;
  events: number;
  situations: ReadonlySet<Situation>;
  /** Transitions that the run has met. */
  coverage: ReadonlySet<string>;
};

type SimulateOptions = {
  trace?: boolean;
  /** Reads what the run left before it is discarded. */
  onEnd?: (cluster: Cluster, clients: readonly Client[]) => Promise<void>;
};

/** Runs a scenario in virtual time and verifies what happened. One run at a time in a process: it replaces timers and clocks. */
export async function simulate(scenario: Scenario, { trace: keepsLines = false, onEnd }: SimulateOptions = {}): Promise<Run> {
  // Loaded on demand, because a run over the log in memory needs a fifth fewer modules. Before the clock is installed, because loading takes real time.
  const Servers = scenario.log === 'nats' ? (await import('./nats-servers.ts')).NatsServers : MemoryServers;
  const random = new Random(scenario.seed, 'delays and ids');
  const clock = new VirtualClock(random);
  const trace = new Trace(clock, keepsLines);
  const crashes: Violation[] = [];
  const situations = new Situations();
  const coverage = new Coverage();
  const runs = new AgentRuns(clock, situations);
  const receiver = new WebhookReceiver(clock, random, trace);
  const onCrash = (process: string, error: unknown) => {
    trace.add(process, 'crashed', String(error));
    crashes.push({ rule: 'a process crashed', detail: `${process}: ${error instanceof Error ? error.stack : String(error)}` });
  };
  const onUnhandled = (error: unknown) => cluster.crashed(clock.process, error);
  clock.install();
  // A stack costs more than the error itself, and a failing run is repeated with a trace.
  const { stackTraceLimit } = Error;
  if (!keepsLines) Error.stackTraceLimit = 0;
  process.on('unhandledRejection', onUnhandled);
  clock.onThrow = (from, error) => cluster.crashed(from, error);
  const servers = new Servers(scenario.settings, { clock, random, trace, runs, situations, coverage });
  const cluster = new Cluster(scenario.settings, {
    clock,
    random,
    trace,
    runs,
    receiver,
    servers,
    situations,
    coverage,
    onCrash,
  });
  try {
    const clients: Client[] = [];
    for (const plan of scenario.tasks) clients.push(new Client(plan, { clock, random, trace, cluster, situations, clients }));
    void servers.open();
    cluster.startAll();
    for (const client of [...clients]) void client.run();
    schedule(scenario.faults, { clock, trace, cluster, receiver, clients });
    const untilMs = Math.max(endOfFaults(scenario.faults), workedAt(scenario)) + LIVENESS_MS_MAX;
    let hasEnded = false;
    const watching = async () => {
      hasEnded =
        clients.every(({ isDone }) => isDone) &&
        runs.all.every(run => run.endedAt !== undefined) &&
        cluster.servers.openItems === 0 &&
        cluster.servers.log !== undefined &&
        (await isAtRest(cluster, clients, receiver));
    };
    clock.after(CHECK_MS, () => void watching(), CHECK_MS);
    await clock.run(() => hasEnded, untilMs);
    const endedAt = clock.nowMs;
    if (hasEnded) {
      await clock.run(() => false, clock.nowMs + REST_MS);
      // A request whose answer was lost in a fault is repeated, and keeps its timer until its time limit. All such timers end, whereas
      // leaked timers remain.
      const hasFewTimers = () => clock.pendingTimers <= servers.timersAtRestMax;
      await clock.run(hasFewTimers, Math.max(clock.nowMs, endOfFaults(scenario.faults) + servers.requestMsMax));
    }
    const { pendingTimers } = clock;
    const evidence = { scenario, cluster, clients, runs, receiver, situations, coverage, hasEnded, endedAt, pendingTimers };
    cluster.suspend();
    const judged = verify(evidence).then(async violations => {
      await onEnd?.(cluster, clients);
      return violations;
    });
    const violations = await clock.runUntilSettled(judged);
    return {
      violations: [...crashes, ...violations],
      digest: trace.digest,
      lines: trace.lines,
      endedAt,
      events: clock.events,
      situations: situations.met,
      coverage: coverage.met,
    };
  } finally {
    cluster.close();
    // Callbacks that run because the processes end must not reach the next run.
    await new Promise(resolve => process.nextTick(resolve));
    process.off('unhandledRejection', onUnhandled);
    clock.uninstall();
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** When the agents have worked twice at most. With quotas, each task may have to wait for all others. */
function workedAt({ tasks, settings: { authTimeoutMs, limits } }: Scenario): number {
  const works = tasks.map(plan => 2 * workMs(plan, authTimeoutMs));
  if (limits?.ownerOpenTasksMax === undefined) return Math.max(0, ...tasks.map(({ startAt }, index) => startAt + works[index]!));
  return Math.max(0, ...tasks.map(({ startAt }) => startAt)) + works.reduce((sum, ms) => sum + QUOTA_MS + ms, 0);
}

/** How long a client may wait after another task has ended before its own begins. */
const QUOTA_MS = 5_000;

/** How long the agents of a task and of its fork work in one attempt of each turn. */
function workMs({ turns, fork }: TaskPlan, authTimeoutMs: number): number {
  const ofScript = ({ tokens, everyMs, silentMs = 0, pause, openArtifacts, credentials }: AgentScript) =>
    (pause?.ms ?? 0) +
    silentMs +
    (tokens + (openArtifacts?.count ?? 0)) * everyMs +
    (credentials === undefined ? 0 : authTimeoutMs);
  const ofFork = fork === undefined ? 0 : workMs(fork.plan, authTimeoutMs);
  return turns.reduce((sum, { scripts }) => sum + Math.max(...Object.values(scripts).map(ofScript)), ofFork);
}

/** Whether every task has ended, the index shows that, and every webhook has received the end. */
async function isAtRest(cluster: Cluster, clients: readonly Client[], receiver: WebhookReceiver): Promise<boolean> {
  const { log } = cluster;
  for (const client of clients) {
    const { taskId } = client;
    const aggregate = taskId === undefined ? undefined : (await log.facts.last(taskId))?.record.aggregate;
    if (aggregate === undefined || !isTerminal(aggregate.state)) return false;
    const index: TaskIndexEntry | undefined = (await log.tasks.get(aggregate.taskId))?.value;
    if (index?.generation !== aggregate.generation) return false;
    if ((await undeliveredOf(client, aggregate, cluster, receiver)) !== undefined) return false;
  }
  return true;
}
