import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../simulator/random.ts';
import type { RecordedHistory } from '../../support/history/history.ts';
import { canMountDisk, mountDisk } from '../../support/small-disk.ts';
import { historyOf } from '../../support/task-promises.ts';
import { afterOf, generationOf, startWebhook } from '../../support/webhooks/webhook.ts';
import { monotonicMs, readRuns } from './agents/run-file.ts';
import { CampaignCluster, type ClusterSize } from './campaign-cluster.ts';
import { CampaignClient, type ClientDeps } from './client.ts';
import { clusterKeyOf, type FaultClass, needsOf } from './fault-classes.ts';
import { FAKETIME } from './stepped-clock.ts';
import { type FaultTimes, type FlowTimes, flowTimesOf } from './time-to-flow.ts';
import { type Verdict, verifyClass } from './verify-class.ts';
import { taskPlan } from './workload.ts';

export type CampaignOptions = {
  /** Minimum number of tasks in all classes together. */
  tasks: number;
  classes: readonly FaultClass[];
  replicas: 1 | 3;
  size: ClusterSize;
  seed: number;
  /** Clients with a task at one time. */
  concurrency: number;
  /** Replaces the minimum number of faults of each class. */
  faultsMin?: number;
  /** Replaces the time between two faults of each class. */
  quietMs?: { min: number; max: number };
  /** Tasks that begin after the last fault. All of them must succeed, whatever happened before. Default 24. */
  probes?: number;
  print: (line: string) => void;
  /** Called after each class with the results so far. */
  onResults?: (results: readonly ClassResult[]) => void;
};

export type ClassResult = Verdict & {
  name: string;
  what: string;
  tasks: number;
  faults: number;
  seconds: number;
  /** Load average of the machine at the end. */
  load: number;
  flow: FlowTimes;
  /** The longest time for which the machine itself was suspended. */
  stillSeconds: number;
  untested?: string;
};

/** Default of `probes`. */
const PROBES = 24;
/** Longest time from the last fault and the start of the last task until everything has ended. */
const LIVENESS_MS_MAX = 120_000;
/** Maximum faults of a run, as a multiple of the minimum. Remaining tasks run without faults. */
const FAULTS_FACTOR_MAX = 3;
/** Milliseconds between two faults. */
const QUIET_MS = { min: 2_000, max: 5_000 };
/** Fewer than a page of a list has. */
const TASKS_OF_CALLER = 40;
const STATUS_EVERY_MS = 30_000;
const TEXT_POLL_MS = 20;
const STILLNESS_CHECK_MS = 500;
/** Shorter delays may come from a busy machine. */
const STILL_SECONDS_MIN = 5;

/** Runs each class of faults on a cluster of real processes. */
export async function runCampaign(options: CampaignOptions): Promise<ClassResult[]> {
  const results: ClassResult[] = [];
  const tasks = Math.ceil(options.tasks / options.classes.length);
  for (const group of Map.groupBy(options.classes, clusterKeyOf).values()) {
    const remaining = [...group];
    // A cluster that a class has left unusable is replaced.
    while (remaining.length > 0) {
      for await (const result of onOneCluster(remaining, tasks, options)) {
        results.push(result);
        options.print(lineOf(result));
        options.onResults?.(results);
      }
    }
  }
  return results;
}

/** Runs classes until none is left or the cluster fails. Removes those that have run from `remaining`. */
async function* onOneCluster(remaining: FaultClass[], tasks: number, options: CampaignOptions): AsyncGenerator<ClassResult> {
  const { diskBytes, clocks = false } = remaining[0]!.needs ?? {};
  const missing =
    (diskBytes !== undefined && !canMountDisk && 'only root can mount a small disk') ||
    (clocks && FAKETIME === undefined && 'libfaketime is not installed');
  if (missing) {
    for (const faultClass of remaining.splice(0)) yield untested(faultClass, missing);
    return;
  }
  const nodes = options.replicas === 1 ? 1 : options.size.nodes;
  const disks = diskBytes === undefined ? undefined : Array.from({ length: nodes }, () => mountDisk(diskBytes));
  const stores = disks?.map(({ path }) => join(path, 'store'));
  for (const store of stores ?? []) mkdirSync(store);
  try {
    await using cluster = await CampaignCluster.start(needsOf(remaining[0]!, options, stores));
    for (let faultClass = remaining.shift(); faultClass !== undefined; faultClass = remaining.shift()) {
      const run = new ClassRun(faultClass, cluster, options);
      const result = await run.run(tasks);
      if (result.violations.length > 0) options.print(`  evidence in ${await run.keepEvidence(result)}`);
      yield result;
      if (run.hasFailed) break;
    }
  } finally {
    for (const disk of disks ?? []) disk.unmount();
  }
}

function untested({ name, what }: FaultClass, reason: string): ClassResult {
  const flow = { streams: undefined, slowest: undefined, lasted: undefined };
  const verdict = { violations: [], states: {}, failures: {}, audited: 0, auditsIncomplete: 0, events: 0, reconnects: 0 };
  return { ...verdict, name, what, tasks: 0, faults: 0, seconds: 0, load: 0, flow, stillSeconds: 0, untested: reason };
}

function lineOf({ name, tasks, faults, violations, flow, seconds, failures, stillSeconds }: ClassResult): string {
  const still = stillSeconds > STILL_SECONDS_MIN ? `, the machine stood still for ${stillSeconds} s` : '';
  const ms = (value: number | undefined) => (value === undefined ? '-' : `${Math.round(value)}`);
  const pauses = `text paused p50 ${ms(flow.streams?.p50)} p99 ${ms(flow.streams?.p99)} max ${ms(flow.streams?.max)} ms`;
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0);
  return `${name}: ${tasks} tasks, ${faults} faults, ${violations.length} violations, ${failed} failures, ${pauses}, ${seconds} s${still}`;
}

/** One class on one cluster. */
class ClassRun {
  readonly #class: FaultClass;
  readonly #cluster: CampaignCluster;
  readonly #options: CampaignOptions;
  readonly #clients: CampaignClient[] = [];
  readonly #history: RecordedHistory[number][] = [];
  readonly #faults: FaultTimes[] = [];
  readonly #abandoned = new AbortController();
  #running = 0;
  #isStriking = true;
  /** Timer that abandons the remaining clients. */
  #late: NodeJS.Timeout | undefined;
  #failure: unknown;

  constructor(faultClass: FaultClass, cluster: CampaignCluster, options: CampaignOptions) {
    this.#class = faultClass;
    this.#cluster = cluster;
    this.#options = options;
  }

  /** The cluster cannot be used further. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  async run(tasksMin: number): Promise<ClassResult> {
    const startedAt = performance.now();
    const { name, what } = this.#class;
    await using webhook = await startWebhook();
    const status = setInterval(() => this.#printStatus(), STATUS_EVERY_MS);
    const stillness = new Stillness();
    const deps = {
      ingresses: this.#cluster.of('ingress').map(({ process }) => process.url),
      webhooksUrl: webhook.url,
      signal: this.#abandoned.signal,
      record: (operation: RecordedHistory[number]) => this.#history.push(operation),
    };
    const workload = this.#work(tasksMin, deps);
    await this.#strike(tasksMin);
    this.#late = setTimeout(() => this.#abandoned.abort(), LIVENESS_MS_MAX);
    await workload;
    clearTimeout(this.#late);
    clearInterval(status);
    stillness.end();
    const flow = flowTimesOf(
      this.#faults,
      this.#allClients.flatMap(({ viewers }) => viewers),
    );
    const received = () =>
      webhook
        .accepted()
        .map(one => ({ url: `${webhook.url}${one.path}`, generation: generationOf(one), after: afterOf(one), body: one.text }));
    const toMonotonic = monotonicMs() - performance.now();
    const verdict = await verifyClass({
      cluster: this.#cluster,
      faultClass: this.#class,
      clients: this.#allClients,
      now: monotonicMs(),
      runs: this.#runs(),
      faults: this.#faults.map(({ startedAt, endedAt }) => ({
        startedAt: startedAt + toMonotonic,
        endedAt: endedAt + toMonotonic,
      })),
      received,
      history: this.#history,
    });
    if (this.#failure !== undefined)
      verdict.violations.push({ rule: 'the cluster starts again', detail: String(this.#failure), task: '' });
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const load = Math.round(loadavg()[0]! * 10) / 10;
    return {
      ...verdict,
      name,
      what,
      tasks: this.#allClients.length,
      faults: this.#faults.length,
      seconds,
      load,
      flow,
      stillSeconds: stillness.seconds,
    };
  }

  /** Including the clients of forked tasks. */
  get #allClients(): CampaignClient[] {
    return this.#clients.flatMap(client => (client.fork === undefined ? [client] : [client, client.fork]));
  }

  #runs() {
    return readRuns(this.#cluster.runsFolder, this.#cluster.deaths);
  }

  /** Keeps `concurrency` clients busy until the faults are over, then starts the last tasks. */
  async #work(tasksMin: number, deps: Omit<ClientDeps, 'caller'>): Promise<void> {
    const { seed, concurrency, probes: probesMin = PROBES } = this.#options;
    const random = new Random(seed, `${this.#class.name} tasks`);
    let probes = 0;
    let caller = this.#cluster.takeCaller();
    const worker = async () => {
      while (this.#isStriking || this.#clients.length < tasksMin || probes < probesMin) {
        if (!this.#isStriking) probes += 1;
        const name = `${this.#class.name.replaceAll(/\W+/g, '-')}-${this.#clients.length + 1}`;
        if (this.#clients.length % TASKS_OF_CALLER === 0) caller = this.#cluster.takeCaller();
        const client = new CampaignClient(
          taskPlan(random, name, this.#class.workload),
          { ...deps, caller },
          this.#clients.length,
        );
        this.#clients.push(client);
        this.#late?.refresh();
        this.#running += 1;
        await client.run();
        this.#running -= 1;
        if (deps.signal.aborted) return;
      }
    };
    await Promise.all(Array.from({ length: concurrency }, worker));
  }

  /** Causes faults until there are enough faults and enough tasks. */
  async #strike(tasksMin: number): Promise<void> {
    const random = new Random(this.#options.seed, `${this.#class.name} faults`);
    const faultsMin = this.#options.faultsMin ?? this.#class.faultsMin;
    const { min, max } = this.#options.quietMs ?? this.#class.quietMs ?? QUIET_MS;
    try {
      while (
        this.#faults.length < faultsMin ||
        (this.#clients.length < tasksMin && this.#faults.length < faultsMin * FAULTS_FACTOR_MAX)
      ) {
        await sleep(random.between(min, max));
        await this.#textFlows();
        const fault = { startedAt: performance.now(), endedAt: Number.POSITIVE_INFINITY };
        this.#faults.push(fault);
        await this.#class.strike({ cluster: this.#cluster, random, print: this.#options.print });
        fault.endedAt = performance.now();
      }
    } catch (error) {
      this.#failure = error;
      const last = this.#faults.at(-1);
      if (last?.endedAt === Number.POSITIVE_INFINITY) last.endedAt = performance.now();
    } finally {
      this.#isStriking = false;
    }
  }

  /**
   * Resolves when a task is in mid-text, so that every fault meets one. Rejects if no text flows for as long as everything may take to end.
   */
  async #textFlows(): Promise<void> {
    const untilMs = performance.now() + LIVENESS_MS_MAX;
    while (!this.#allClients.some(({ viewers }) => viewers.some(viewer => viewer.isInText))) {
      if (performance.now() > untilMs) throw new Error('no task is in mid-text');
      await sleep(TEXT_POLL_MS);
    }
  }

  #printStatus(): void {
    this.#options.print(
      `  ${this.#class.name}: ${this.#clients.length} tasks begun, ${this.#running} run, ${this.#faults.length} faults, load ${loadavg()[0]!.toFixed(1)}`,
    );
  }

  /** Writes what is known of the tasks with violations, and the logs of all processes. Resolves with the folder. */
  async keepEvidence(result: ClassResult): Promise<string> {
    const folder = mkdtempSync(join(tmpdir(), `hopline-faults-${result.name.replaceAll(/\W+/g, '-')}-`));
    const { remoteAgent, replicas, log } = this.#cluster;
    writeFileSync(join(folder, 'result.json'), JSON.stringify({ ...result, faultTimes: this.#faults }, undefined, 2));
    mkdirSync(join(folder, 'logs'));
    for (const { spec, output } of [remoteAgent, ...replicas.map(({ process }) => process)])
      writeFileSync(join(folder, 'logs', `${spec.instance}.log`), output);
    const runs = this.#runs();
    const concerned = new Set(result.violations.map(({ task }) => task));
    for (const client of this.#allClients.filter(({ taskId }) => concerned.has(taskId ?? ''))) {
      const { plan, taskId, viewers, acknowledged, activity } = client;
      const history = taskId === undefined ? undefined : await historyOf(log.facts, taskId).catch(String);
      const inputs: unknown[] = [];
      if (taskId !== undefined) for await (const input of log.inputs.read(taskId)) inputs.push(input);
      const ofClient = runs.filter(({ messageId }) => messageId.startsWith(`${plan.name}-m`));
      const operations = this.#history.filter(operation => operation.client === plan.name);
      const known = { plan, taskId, activity, acknowledged, runs: ofClient, viewers, operations, history, inputs };
      writeFileSync(join(folder, `${plan.name}.json`), JSON.stringify(known, undefined, 2));
    }
    return folder;
  }
}

/** Detects that the machine itself was suspended, because a suspended virtual machine is a fault that belongs to no class. */
class Stillness {
  #longestMs = 0;
  #at = performance.now();
  readonly #timer = setInterval(() => {
    const now = performance.now();
    this.#longestMs = Math.max(this.#longestMs, now - this.#at);
    this.#at = now;
  }, STILLNESS_CHECK_MS);

  get seconds(): number {
    return Math.round(this.#longestMs / 1_000);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
