import type { Layout } from '@hopline/events';
import type { AgentScript } from '../support/agents/scripted-agent.ts';
import { CALLERS, INTRUSIONS } from './callers.ts';
import type { TaskPlan } from './client.ts';
import type { ClusterSettings } from './cluster-settings.ts';
import { endOfFaults, type Fault } from './faults.ts';
import type { LogPart } from './log-servers.ts';
import { Random } from './random.ts';
import { EPOCH_MS } from './virtual-clock.ts';

/** `memory`: the log in memory, with faults above the NATS client. `nats`: log-jetstream over a double of nats-server. */
export type LogKind = 'memory' | 'nats';

/** Everything on which a run depends, except the code. */
export type Scenario = {
  /** Seed of delays, backoff and ids. */
  seed: number;
  log: LogKind;
  settings: ClusterSettings;
  tasks: TaskPlan[];
  faults: Fault[];
};

/** The settings unless a scenario needs others. */
export const SETTINGS: ClusterSettings = {
  topology: { relay: 2, supervisor: 2, 'agent.writer': 2, 'agent.reviewer': 1, notifier: 2, ingress: 2 },
  shards: 4,
  // Small, so that a task soon reaches it, but more than twice the limit of its metadata, which is 128 KiB.
  recordBytesMax: 320 * 1024,
  // Far shorter than the 10 minutes of a real stream, so that some turns outlast it.
  duplicateWindowMs: 10_000,
  ackWaitMs: 6_000,
  leaseMs: 4_000,
  heartbeatMs: 1_000,
  inputTimeoutMs: 8_000,
  authTimeoutMs: 8_000,
  copyForwardAfterMs: undefined,
  copyPartUnitsMax: undefined,
};

/**
 * From this seed on, runs over the in-memory log also draw limits. Runs of lower seeds stay as they were, because past defects are
 * identified by their seeds.
 */
const LIMITS_SEED_MIN = 1_000_000;

/**
 * From this seed on, clients speak older dialects, belong to callers with quotas, and fork tasks, and agents write bursts and pause, over both logs. Seeds
 * below it are unchanged.
 */
export const CLIENTS_SEED_MIN = 2_000_000;

/** Tasks and faults of a seed. `theme` replaces the one that follows from the seed. */
export function scenarioOf(seed: number, theme?: string, log: LogKind = 'memory'): Scenario {
  const workload = new Random(seed, 'workload');
  const tasks = Array.from({ length: workload.between(3, 6) }, (_, index) => taskPlan(workload, `task-${index + 1}`));
  planCancels(new Random(seed, 'cancels'), tasks);
  const credentials = new Random(seed, 'credentials');
  const asking = planCredentials(credentials, tasks);
  const settings: ClusterSettings = {
    ...SETTINGS,
    ...(log === 'nats' && { slowConsumers: drawnSlowConsumers(new Random(seed, 'slow consumers')) }),
    ...(workload.chance(0.3) && {
      copyForwardAfterMs: workload.between(2_000, 10_000),
      copyPartUnitsMax: workload.between(500, 4_000),
    }),
  };
  const holding = new Random(seed, 'holding producers').pick(['all', 'all', 'some', undefined] as const);
  if (holding !== undefined) settings.holdingProducers = holding;
  if (log === 'nats' || seed >= LIMITS_SEED_MIN) {
    Object.assign(settings, drawnLimits(new Random(seed, 'limits')));
    planContexts(new Random(seed, 'contexts'), tasks);
    planLooks(new Random(seed, 'looks'), tasks);
  }
  const random = new Random(seed, 'faults');
  const names = seed < LATER_THEMES_SEED_MIN ? NATS_THEME_NAMES.filter(name => !(name in LATER_WIRE_THEMES)) : NATS_THEME_NAMES;
  const chosen = theme ?? random.pick(log === 'nats' ? names : THEME_NAMES);
  if (chosen === UPGRADE) settings.startsWithVersionBefore = true;
  if (log === 'nats')
    settings.replicas = chosen === 'leaders' || chosen === 'stale reads' ? 3 : new Random(seed, 'replicas').pick([1, 3]);
  const layouts = layoutsOf(new Random(seed, 'layouts'), chosen);
  if (layouts !== undefined) settings.layouts = layouts;
  const replicas = ([name, count]: [string, number]) => Array.from({ length: count }, (_, index) => `${name}-${index + 1}`);
  if (chosen === GATHERED) planGathered(new Random(seed, 'gathered'), tasks, settings);
  // The tasks outside of the partition need another one.
  if (chosen === LASTING_PARTITION)
    settings.topology = { ...settings.topology, ingress: Math.max(2, settings.topology.ingress!) };
  const themes = { ...THEMES, ...WIRE_THEMES, ...LATER_WIRE_THEMES, ...STEP_THEMES, ...GATHERED_THEMES };
  const faults = themes[chosen]!(random, Object.entries(settings.topology).flatMap(replicas), groupsOf(settings));
  if (asking.length > 0 && faults.length > 0 && credentials.chance(0.3)) faults.push(supervisorDeath(credentials, asking));
  if (chosen === 'payloads' && random.chance(0.3)) tasks[0] = wideTaskPlan(random, 'task-1');
  if (chosen === SILENT_AGENTS) planSilence(new Random(seed, 'silence'), tasks);
  if (chosen in STEP_THEMES) planSteps(new Random(seed, 'steps'), tasks);
  if (seed >= CLIENTS_SEED_MIN) planBursts(new Random(seed, 'bursts'), tasks);
  if (chosen === LASTING_PARTITION)
    tasks.push(...outsidePlans(new Random(seed, 'outside'), faults[0] as Fault & { slot: string }));
  // Work may begin at any moment of an update and must not be affected by it.
  if (chosen === 'rolling update')
    for (let short = 1; short <= PROBES; short++)
      tasks.push(probePlan(`short-${short}`, random.between(faults[0]!.at, endOfFaults(faults) + 1_000)));
  // Whatever happened, every shard must work afterwards.
  const probes = faults.length === 0 ? 0 : PROBES;
  for (let probe = 1; probe <= probes; probe++)
    tasks.push(probePlan(`probe-${probe}`, endOfFaults(faults) + workload.between(1_000, 6_000)));
  // After facts are lost, a client's cursor may name an event that the log does not have, and an import may also be lost.
  if (seed >= CLIENTS_SEED_MIN) {
    planDialects(new Random(seed, 'dialects'), tasks);
    // A task that has to end during a fault has no fork, and no quota delays it.
    const ordinary = tasks.filter(({ outside }) => outside === undefined);
    if (faults.every(({ kind }) => kind !== 'lose facts')) {
      planForks(new Random(seed, 'forks'), ordinary);
      planCopies(new Random(seed, 'copies'), ordinary);
    }
    if (ordinary.length === tasks.length) planCallers(new Random(seed, 'callers'), tasks, settings);
  }
  return { seed, log, settings, tasks, faults };
}

/** Short tasks after the last fault. */
const PROBES = 4;

function probePlan(name: string, startAt: number, agent = 'writer'): TaskPlan {
  const turn = { agents: [agent], scripts: { [agent]: { tokens: 2, everyMs: 20, end: 'done' as const } } };
  const viewer = { afterMs: 0, leavesAfter: [], pauseMs: 100 };
  return {
    name,
    startAt,
    profile: 'transparent',
    turns: [turn],
    webhook: 'with the message',
    cancelAfterMs: undefined,
    viewers: [viewer],
  };
}

/** Tasks that begin during a partition and need only processes other than the partitioned one. */
function outsidePlans(random: Random, { slot, at }: Fault & { slot: string }): TaskPlan[] {
  const agent = slot.startsWith(WRITERS) ? 'reviewer' : 'writer';
  return Array.from({ length: PROBES }, (_, index) => ({
    ...probePlan(`outside-${index + 1}`, at + random.between(500, 10_000), agent),
    outside: { endsBy: at + LASTING_MS_MIN, ...(slot.startsWith('ingress') && { avoids: slot }) },
  }));
}

/** A task whose additional artifacts take about as much space as a record may have. */
function wideTaskPlan(random: Random, name: string): TaskPlan {
  const openArtifacts = { count: 40, descriptionChars: random.between(7_200, 8_000) };
  const turn = { agents: ['writer'], scripts: { writer: { tokens: 5, everyMs: 20, openArtifacts, end: 'done' as const } } };
  const viewer = { afterMs: 0, leavesAfter: [], pauseMs: 100 };
  return {
    name,
    startAt: 1_500,
    profile: 'transparent',
    turns: [turn],
    webhook: undefined,
    cancelAfterMs: undefined,
    viewers: [viewer],
  };
}

function taskPlan(random: Random, name: string): TaskPlan {
  const profile = random.chance(0.7) ? 'caipe' : 'transparent';
  const questions = random.chance(0.3) ? random.between(1, 2) : 0;
  const agents =
    profile === 'caipe' && random.chance(0.3) ? ['writer', 'reviewer'] : [random.chance(0.8) ? 'writer' : 'reviewer'];
  const turns = Array.from({ length: questions + 1 }, (_, turn) => ({
    agents,
    scripts: Object.fromEntries(agents.map((agent, index) => [agent, scriptOf(random, turn < questions && index === 0)])),
  }));
  const viewers = Array.from({ length: random.between(1, 2) }, () => ({
    afterMs: random.between(0, 3_000),
    leavesAfter: Array.from({ length: random.between(0, 3) }, () => random.between(1, 8)),
    pauseMs: random.between(10, 2_000),
  }));
  return {
    name,
    startAt: random.between(1_000, 8_000),
    profile,
    turns,
    webhook: random.chance(0.3) ? random.pick(['with the message', 'later']) : undefined,
    cancelAfterMs: random.chance(0.15) ? random.between(0, 6_000) : undefined,
    viewers,
  };
}

/**
 * Half of the canceled agents would write for far longer than a cancel may take, and a third of the questions get a cancel instead of an
 * answer.
 */
function planCancels(random: Random, tasks: readonly TaskPlan[]): void {
  for (const plan of tasks) {
    const [talksOn, cancelsAtQuestion] = [random.chance(0.5), random.chance(0.33)];
    if (plan.cancelAfterMs === undefined) {
      if (plan.turns.length > 1 && cancelsAtQuestion) plan.cancelsAtQuestion = true;
      continue;
    }
    if (!talksOn) continue;
    for (const script of plan.turns.flatMap(({ scripts }) => Object.values(scripts)))
      Object.assign(script, { tokens: 40, everyMs: 1_500 });
  }
}

/** In a fifth of the runs, agents of most tasks need credentials in one of their turns. Returns these tasks. */
function planCredentials(random: Random, tasks: readonly TaskPlan[]): TaskPlan[] {
  if (!random.chance(0.2)) return [];
  const asking = tasks.filter(() => random.chance(0.7));
  for (const { turns } of asking) {
    const at = random.between(0, turns.length - 1);
    const turn = turns[at]!;
    const later = structuredClone(turn);
    const { authTimeoutMs } = SETTINGS;
    const how = random.pick([
      'arrive',
      'arrive',
      'at the timeout',
      'never',
      'by message',
      'by message',
      'by a later message',
    ] as const);
    const isAll = random.chance(0.3);
    for (const agent of isAll ? turn.agents : [random.pick(turn.agents)]) {
      const script = turn.scripts[agent]!;
      script.credentials = { afterTokens: random.pick([0, 0, 1, Math.floor(script.tokens / 2), script.tokens]) };
      if (how === 'arrive') script.credentials.arriveAfterMs = random.between(50, 0.75 * authTimeoutMs);
      if (how === 'at the timeout') script.credentials.arriveAfterMs = random.between(0.9 * authTimeoutMs, 1.1 * authTimeoutMs);
      if (how === 'by a later message') script.credentials.endsTurn = true;
    }
    if (!how.endsWith('message')) continue;
    turn.answersAfterMs = random.pick([
      random.between(50, authTimeoutMs / 2),
      random.between(0.9 * authTimeoutMs, 1.3 * authTimeoutMs),
    ]);
    turns.splice(at + 1, 0, later);
  }
  return asking;
}

/** One supervisor or all of them die while a task probably waits for credentials. */
function supervisorDeath(random: Random, asking: readonly TaskPlan[]): Fault {
  const at = random.pick(asking).startAt + random.between(300, 4_000);
  return { at, kind: 'kill', slot: random.pick(['supervisor-1', 'supervisor-*']), forMs: random.between(100, 3_000) };
}

/** Numbers of processes and shards, and memory so small that every bound is reached. */
function drawnLimits(random: Random): Partial<ClusterSettings> {
  const topology = Object.fromEntries(Object.keys(SETTINGS.topology).map(service => [service, random.between(1, 4)]));
  return {
    topology,
    shards: random.between(1, 7),
    recordBytesMax: random.pick([320, 512, 1024]) * 1024,
    limits: {
      ringFactsMax: random.pick([2, 16, 256]),
      ringBytesMax: random.pick([2, 256]) * 1024,
      ringsBytesMax: random.pick([8, 32 * 1024]) * 1024,
      viewsBytesMax: random.pick([4, 64 * 1024]) * 1024,
      feedLingerMs: random.pick([50, 5_000]),
      idleFeedsMax: random.pick([1, 1_000]),
    },
    follow: {
      bufferRecordsMax: random.pick([2, 16, 256]),
      bufferBytesMax: random.pick([4, 1024]) * 1024,
      tailCheckMs: random.pick([500, 2_000]),
    },
  };
}

/** Far smaller than the buffers of a socket in production, because few bytes are sent in a run. The deadline of nats-server is 10 s. */
function drawnSlowConsumers(random: Random): NonNullable<ClusterSettings['slowConsumers']> {
  return { unreadBytesMax: random.pick([2, 8, 32]) * 1024, writeDeadlineMs: random.between(2_000, 10_000) };
}

/** In two thirds of the runs some tasks share a context. */
function planContexts(random: Random, tasks: readonly TaskPlan[]): void {
  const shared = random.pick([0, 0.5, 1]);
  for (const task of tasks) if (random.chance(shared)) task.contextId = 'shared-context';
}

function planLooks(random: Random, tasks: readonly TaskPlan[]): void {
  for (const task of tasks)
    task.looks = Array.from({ length: random.between(0, 5) }, () => ({
      afterMs: random.between(0, 15_000),
      kind: random.pick(['read', 'read', 'list', 'list all'] as const),
    }));
}

/** In half of the runs, some texts arrive at once, and some have a pause of seconds or minutes. */
function planBursts(random: Random, tasks: readonly TaskPlan[]): void {
  if (!random.chance(0.5)) return;
  for (const script of tasks.flatMap(({ turns }) => turns.flatMap(({ scripts }) => Object.values(scripts)))) {
    if (random.chance(0.1)) Object.assign(script, { tokens: random.between(300, 2_000), everyMs: 0 });
    if (!random.chance(0.1)) continue;
    const ms = random.chance(0.7) ? random.between(2_000, 15_000) : random.between(15_000, 150_000);
    script.pause = { afterTokens: random.between(0, script.tokens), ms };
  }
}

/** In half of the runs, many clients speak older dialects, most of them without a version in their requests, and some wait for the end of a turn. */
function planDialects(random: Random, tasks: readonly TaskPlan[]): void {
  if (!random.chance(0.5)) return;
  for (const task of tasks) {
    if (random.chance(0.4)) continue;
    const name = random.pick(['1.0', '0.3', '0.3', 'legacy', 'legacy'] as const);
    task.dialect = { name, isUnversioned: name !== '1.0' && random.chance(0.7), isBlocking: random.chance(0.5) };
    if (name !== 'legacy' || !random.chance(0.4)) continue;
    task.hasNoMessageId = true;
    task.chosenId = `${task.name}-m1`;
  }
}

/** In a third of the runs, some tasks are exported and imported. */
function planCopies(random: Random, tasks: readonly TaskPlan[]): void {
  if (!random.chance(0.33)) return;
  for (const task of tasks) if (random.chance(0.3)) task.isCopied = true;
}

/** In a third of the runs, some tasks are continued by forks. A client of April 2025 has no fork, because it chooses the id of its task. */
function planForks(random: Random, tasks: readonly TaskPlan[]): void {
  if (!random.chance(0.33)) return;
  for (const task of tasks) {
    if (task.dialect?.name === 'legacy' || !random.chance(0.3)) continue;
    const plan = { ...taskPlan(random, `${task.name}-fork`), startAt: 0, ...(task.dialect && { dialect: task.dialect }) };
    task.fork = { afterFrames: random.between(1, 30), plan };
  }
}

/** In half of the runs clients belong to callers, most of them with low quotas, and send requests about the tasks of others. */
function planCallers(random: Random, tasks: readonly TaskPlan[], settings: ClusterSettings): void {
  if (!random.chance(0.5)) return;
  settings.isAuthenticated = true;
  for (const [index, task] of tasks.entries()) {
    task.caller = CALLERS[index] ?? random.pick(CALLERS);
    const { caller } = task;
    if (task.dialect?.name === 'legacy' && task.hasNoMessageId === undefined)
      task.chosenId = `chosen-${tasks.slice(0, index).filter(other => other.caller === caller && other.chosenId !== undefined).length}`;
    if (task.fork !== undefined) task.fork.plan.caller = task.caller;
    task.intrusions = Array.from({ length: random.between(0, 2) }, () => ({
      afterMs: random.between(0, 8_000),
      kind: random.pick(INTRUSIONS),
    }));
  }
  if (!random.chance(0.7)) return;
  settings.limits = {
    ...settings.limits,
    ownerOpenTasksMax: random.pick([1, 2, 3]),
    tenantLimitFactor: random.pick([1, 2]),
    ownerStreamsMax: random.pick([1, 2, 4]),
    ownerMessagesPerSecond: random.pick([1, 5]),
    ownerMessagesBurst: random.pick([1, 2, 10]),
    ownerSentBytesPerSecond: random.pick([4, 1024]) * 1024,
    ownerSentBytesBurst: random.pick([8, 1024]) * 1024,
  };
}

/** Agents are silent for longer than the work queue remembers the ids of their items. */
function planSilence(random: Random, tasks: readonly TaskPlan[]): void {
  for (const script of tasks.flatMap(({ turns }) => turns.flatMap(({ scripts }) => Object.values(scripts))))
    script.silentMs = random.between(1.5 * SETTINGS.duplicateWindowMs, 3 * SETTINGS.duplicateWindowMs);
}

/** Agents whose turns begin with steps that have effects. */
function planSteps(random: Random, tasks: readonly TaskPlan[]): void {
  for (const script of tasks.flatMap(({ turns }) => turns.flatMap(({ scripts }) => Object.values(scripts))))
    Object.assign(script, {
      steps: random.between(1, 6),
      everyMs: random.between(20, 800),
      ...(script.end === 'fails once' && { failsInStep: true }),
    });
}

/** Many tasks at one agent process, whose text is due together. */
function planGathered(random: Random, tasks: TaskPlan[], settings: ClusterSettings): void {
  settings.topology = { ...settings.topology, 'agent.writer': 1 };
  settings.holdingProducers = 'all';
  const everyMs = random.pick([4, 8, 16]);
  const count = random.between(8, 10);
  while (tasks.length < count) tasks.push(taskPlan(random, `task-${tasks.length + 1}`));
  for (const task of tasks) {
    const script = { tokens: Math.floor(random.between(2_000, 5_000) / everyMs), everyMs, end: 'done' as const };
    task.startAt = random.between(1_000, 1_300);
    task.turns = [{ agents: ['writer'], scripts: { writer: script } }];
    delete task.cancelsAtQuestion;
  }
}

/** Two to four stream groups, half of them with a second layout for the tasks that begin later. Undefined: one group. */
function layoutsOf(random: Random, theme: string): readonly Layout[] | undefined {
  if (theme !== GROUPS && (theme !== MIXED || random.chance(0.5))) return undefined;
  const { shards } = SETTINGS;
  const groups = random.between(2, 4);
  const first = { begins: 0, shards, groups };
  if (random.chance(0.5)) return [first];
  const [firstGroups, begins] = [random.between(1, groups - 1), EPOCH_MS + random.between(2_000, 10_000)];
  return [
    { begins: 0, shards: 2 * firstGroups, groups: firstGroups },
    { begins, shards, groups: groups - firstGroups },
  ];
}

function groupsOf({ layouts = [] }: ClusterSettings): number {
  return layouts.reduce((sum, { groups }) => sum + groups, 0) || 1;
}

function scriptOf(random: Random, asks: boolean): AgentScript {
  // Long turns are quiet most of the time, so they outlast windows and leases without many events.
  const everyMs = random.pick([20, 100, 400, 1_500]);
  const tokens = everyMs === 1_500 ? random.between(8, 20) : random.between(1, 25);
  const script: AgentScript = {
    tokens,
    everyMs,
    end: asks ? 'asks' : random.pick(['done', 'done', 'done', 'done', 'fails', 'fails once']),
  };
  if (random.chance(0.2)) script.splitsPairs = true;
  return script;
}

/** `groups`: number of stream groups. */
type Theme = (random: Random, slots: readonly string[], groups: number) => Fault[];

const WRITERS = 'agent.writer';
const SUPERVISORS = 'supervisor';
const RELAYS = 'relay';

const slotsOf = (slots: readonly string[], ...services: string[]) =>
  services.flatMap(service => slots.filter(slot => slot.startsWith(`${service}-`)));

const SILENT_AGENTS = 'silent agents';
const GROUPS = 'groups';
const LASTING_PARTITION = 'lasting partition';
const MIXED = 'mixed';
const UPGRADE = 'upgrade from the previous version';

const isSibling = (slot: string, other: string) =>
  slot.slice(0, slot.lastIndexOf('-')) === other.slice(0, other.lastIndexOf('-'));

const PARTS: readonly LogPart[] = [
  'inputs',
  'facts',
  'work',
  'leases',
  'tasks',
  'agents',
  'messageIds',
  'contexts',
  'pushProgress',
];
/**
 * Parts of the log that may lose their newest records in a loss of power. Their entries are made again, and so are the items of calls
 * (docs/reference/failures.md). Nothing is promised for the others; facts are a fault of their own.
 */
const TAIL_PARTS: readonly LogPart[] = ['leases', 'agents', 'pushProgress', 'work'];
/** Longer than the write deadline of any seed. */
const SLOW_READER_MS = 15_000;
const LASTING_MS_MIN = 30_000;
const BEGIN_MS = { min: 1_500, max: 12_000 };

/** Times and targets of single faults. */
class FaultMaker {
  readonly #random: Random;
  readonly #slots: readonly string[];

  constructor(random: Random, slots: readonly string[]) {
    this.#random = random;
    this.#slots = slots;
  }

  get at(): number {
    return this.#random.between(BEGIN_MS.min, BEGIN_MS.max);
  }

  /** A fault of one process, of any service or of the given one. */
  of(kind: 'kill' | 'stop' | 'freeze' | 'stall' | 'cut' | 'lose acks', minMs: number, maxMs: number, service = ''): Fault {
    const slot = this.#random.pick(this.#slots.filter(name => name.startsWith(service)));
    return { at: this.at, kind, slot, forMs: this.#random.between(minMs, maxMs) };
  }

  slow(): Fault {
    const [slot, forMs, delayMs] = [
      this.#random.pick(this.#slots),
      this.#random.between(1_000, 20_000),
      this.#random.between(50, 1_500),
    ];
    return { at: this.at, kind: 'slow', slot, forMs, delayMs };
  }

  reorder(): Fault {
    const slot = this.#random.pick([...this.#slots, 'relay-*', '*']);
    return {
      at: this.at,
      kind: 'reorder',
      slot,
      forMs: this.#random.between(2_000, 20_000),
      delayMs: this.#random.between(20, 2_000),
    };
  }

  lag(): Fault {
    const slot = this.#random.pick([...this.#slots, 'relay-*', 'notifier-*', '*']);
    return {
      at: this.at,
      kind: 'lag',
      slot,
      forMs: this.#random.between(2_000, 20_000),
      lagMs: this.#random.between(200, 10_000),
    };
  }

  staleTails(): Fault {
    return { at: this.at, kind: 'stale tails', count: this.#random.between(1, 20) };
  }

  breakReads(): Fault {
    return { at: this.at, kind: 'break reads', slot: this.#random.pick(this.#slots), count: this.#random.between(1, 3) };
  }

  loseLive(): Fault {
    return { at: this.at, kind: 'lose live messages', count: this.#random.between(1, 10) };
  }

  setClock(): Fault {
    const byMsMax = this.#random.pick([20_000, 20_000, 3_600_000]);
    return {
      at: this.at,
      kind: 'set clock',
      slot: this.#random.pick(this.#slots),
      byMs: this.#random.between(-byMsMax, byMsMax),
    };
  }

  holdWrites(part: LogPart): Fault & { slot: string } {
    const slot = this.#random.pick(['relay-1', 'relay-2']);
    return { at: this.at, kind: 'hold writes', slot, part, forMs: this.#random.between(6_000, 20_000) };
  }

  refuse(): Fault {
    const part = this.#random.pick<LogPart>(['work', 'tasks', 'messageIds', 'contexts', 'pushProgress']);
    return { at: this.at, kind: 'refuse writes', part, forMs: this.#random.between(500, 10_000) };
  }

  /** A fault of one stream group, while the others work. */
  ofGroup(group: number): Fault {
    const kind = this.#random.pick(['group away', 'lose facts', 'lose facts', 'refuse writes'] as const);
    const forMs = this.#random.between(500, 6_000);
    if (kind !== 'refuse writes') return { at: this.at, kind, group, forMs };
    return { at: this.at, kind, part: this.#random.pick<LogPart>(['inputs', 'facts']), group, forMs };
  }

  restart(): Fault {
    return { at: this.at, kind: 'restart servers' };
  }

  loseFacts(group = 0): Fault {
    return { at: this.at, kind: 'lose facts', group, forMs: this.#random.between(200, 5_000) };
  }

  /** Followers elect another leader 4 to 9 s after the last message of the old one, which learns of it within 20 s. */
  deposed(): Fault {
    const slot = this.#random.pick(this.#slots);
    const electionMs = this.#random.between(4_000, 9_000);
    const forMs = electionMs + this.#random.between(500, 10_000);
    return { at: this.at, kind: 'deposed leader', slot, electionMs, forMs };
  }

  broken(): Fault {
    const kind = this.#random.pick(['half open', 'half open', 'slow consumer'] as const);
    const [at, slot] = [this.at, this.#random.pick(this.#slots)];
    return kind === 'half open' ? { at, kind, slot } : { at, kind, slot, forMs: SLOW_READER_MS };
  }

  loseTails(): Fault {
    const lost = TAIL_PARTS.filter(() => this.#random.chance(0.6));
    const tails = (lost.length > 0 ? lost : TAIL_PARTS).map(part => ({ part, ms: this.#random.between(200, 5_000) }));
    return { at: this.at, kind: 'lose tails', tails, forMs: Math.max(...tails.map(({ ms }) => ms)) };
  }

  lastingPartition(): Fault {
    const service = this.#random.pick(['notifier', 'agent', 'ingress']);
    const slot = this.#random.pick(this.#slots.filter(name => name.startsWith(service)));
    const parts = this.#random.chance(0.5) ? [...PARTS] : PARTS.filter(() => this.#random.chance(0.5));
    return { at: this.at, kind: 'partial partition', slot, parts, forMs: this.#random.between(LASTING_MS_MIN, 60_000) };
  }

  parted(): Fault {
    const parts = PARTS.filter(() => this.#random.chance(0.4));
    const slot = this.#random.pick(this.#slots);
    return { at: this.at, kind: 'partial partition', slot, parts, forMs: this.#random.between(500, 30_000) };
  }

  forget(): Fault {
    return { at: this.at, kind: this.#random.pick(['forget ids', 'forget deliveries'] as const) };
  }

  poison(): Fault {
    const payload = this.#random.pick(['unknown agent input', 'unknown client input', 'token without text'] as const);
    return { at: this.at, kind: 'poison', payload };
  }

  webhooks(): Fault {
    const kind = this.#random.pick(['webhooks down', 'lose webhook answers'] as const);
    return { at: this.at, kind, forMs: this.#random.between(500, 10_000) };
  }

  several(min: number, max: number, choices: readonly (() => Fault)[]): Fault[] {
    return Array.from({ length: this.#random.between(min, max) }, () => this.#random.pick(choices)());
  }
}

/** Some processes are upgraded, and some of those are rolled back. */
function twoVersions(random: Random, slots: readonly string[]): Fault[] {
  const make = new FaultMaker(random, slots);
  const begin = random.between(500, 6_000);
  const move = (kind: 'upgrade' | 'downgrade', slot: string, at: number): Fault => ({
    at,
    kind,
    slot,
    forMs: random.between(100, 1_000),
  });
  const upgraded = slots.filter(() => random.chance(0.5));
  const upgrades = upgraded.map((slot, index) => move('upgrade', slot, begin + index * random.between(300, 1_500)));
  const rolledBack = upgraded.filter(() => random.chance(0.3));
  const end = endOfFaults(upgrades) + 2_000;
  const downgrades = rolledBack.map((slot, index) => move('downgrade', slot, end + index * random.between(300, 1_500)));
  return [...upgrades, ...downgrades, ...make.several(0, 1, [() => make.of('kill', 100, 6_000, 'relay')])];
}

/** Faults of one run belong together, because a run with every fault at once explains nothing. */
const THEMES: Readonly<Record<string, Theme>> = {
  none: () => [],
  deaths: (random, slots) => {
    const make = new FaultMaker(random, slots);
    const kill = () => make.of('kill', 100, 6_000);
    return make.several(1, 4, [kill, kill, () => make.of('freeze', 500, 12_000)]);
  },
  'worker deaths': (random, slots) => {
    // Workers of a role die, are suspended or lose their path one after another, each while the items of another worker change hands.
    const make = new FaultMaker(random, slotsOf(slots, ...random.pick([[WRITERS], [SUPERVISORS], [WRITERS, SUPERVISORS]])));
    const kill = () => make.of('kill', 100, 3_000);
    const still = [() => make.of('freeze', 500, 12_000), () => make.of('stall', 500, 12_000), () => make.of('cut', 500, 8_000)];
    return make.several(2, 5, [kill, kill, ...still]);
  },
  'rolling update': (random, slots) => {
    const service = random.pick(['relay', 'supervisor', 'agent', 'agent', 'notifier', 'ingress', '']);
    const everyMs = random.between(500, 3_000);
    const begin = random.between(BEGIN_MS.min, BEGIN_MS.max);
    const updated = slots.filter(slot => slot.startsWith(service));
    return updated.map((slot, index) => ({ at: begin + index * everyMs, kind: 'stop', slot, forMs: random.between(100, 1_000) }));
  },
  network: (random, slots) => {
    const make = new FaultMaker(random, slots);
    const [cut, loseAcks] = [() => make.of('cut', 500, 25_000), () => make.of('lose acks', 500, 25_000)];
    return make.several(1, 4, [cut, loseAcks, () => make.slow(), () => make.breakReads(), () => make.loseLive()]);
  },
  'frozen path and a death': (random, slots) => {
    // After ackWaitMs the sibling of a frozen process gets its work, and then dies. Only then do the messages of the first process arrive.
    const make = new FaultMaker(random, slotsOf(slots, random.pick([WRITERS, WRITERS, SUPERVISORS])));
    const stall = make.of('stall', 8_000, 14_000) as Extract<Fault, { kind: 'stall' }>;
    const [sibling] = slots.filter(slot => slot !== stall.slot && isSibling(slot, stall.slot));
    if (sibling === undefined) return [stall];
    const at = stall.at + random.between(SETTINGS.ackWaitMs, stall.forMs + 1_000);
    return [stall, { at, kind: 'kill', slot: sibling, forMs: random.between(100, 6_000) }];
  },
  [SILENT_AGENTS]: (random, slots) => {
    const replace = (services: readonly string[], at: number): Fault[] => {
      const [everyMs, kind] = [random.between(100, 3_000), random.pick(['kill', 'stop'] as const)];
      return slotsOf(slots, ...services).map((slot, index) => ({
        at: at + index * everyMs,
        kind,
        slot,
        forMs: random.between(100, 6_000),
      }));
    };
    // A supervisor that takes over repeats the state of its task. That input causes no fact, so it holds back the shard's checkpoint.
    const early = random.chance(0.5) ? replace([SUPERVISORS], random.between(2_000, 6_000)) : [];
    // The services that queued the items, or may queue them again, are replaced once the queue has forgotten their ids.
    const late = random.pick([[SUPERVISORS], [RELAYS], [SUPERVISORS, RELAYS], [RELAYS, SUPERVISORS]]);
    return [...early, ...replace(late, random.between(1.5 * SETTINGS.duplicateWindowMs, 3 * SETTINGS.duplicateWindowMs))];
  },
  'long stalls': (random, slots) => {
    // The fault lasts longer than the log retries a write.
    const make = new FaultMaker(random, slots);
    const service = random.pick(['relay', 'relay', 'notifier', '']);
    const stall = () => make.of('stall', 20_500, 28_000, service);
    return make.several(1, 2, [stall, () => make.of('lose acks', 20_500, 28_000, service), () => make.of('freeze', 500, 12_000)]);
  },
  'log away': (random, slots) => {
    // The log was already slow, and then cannot be reached for longer than writes are retried.
    const make = new FaultMaker(random, slots);
    const slow = ['relay-*', 'notifier-*'].map(slot => ({ ...make.slow(), slot, forMs: 20_000 }));
    const away = make.of(random.pick(['stall', 'lose acks']), 20_500, 28_000);
    return [
      ...slow.map(fault => ({ ...fault, at: Math.max(0, away.at - 3_000) })),
      { ...away, slot: random.pick(['*', 'relay-*']) } as Fault,
    ];
  },
  'late writes': (random, slots) => {
    const make = new FaultMaker(random, slots);
    const hold = make.holdWrites(random.pick<LogPart>(['tasks', 'tasks', 'leases', 'work']));
    const kind = random.pick(['kill', 'freeze', 'stop'] as const);
    return [hold, { at: hold.at + random.between(200, 3_000), kind, slot: hold.slot, forMs: random.between(500, 6_000) }];
  },
  retention: (random, slots) => {
    const make = new FaultMaker(random, slots);
    const removes = random.pick(['up to the last', 'all'] as const);
    const outage: Fault = { at: make.at, kind: 'outlast retention', forMs: random.between(1_000, 8_000), removes };
    return [outage, ...make.several(0, 1, [() => make.of('kill', 100, 6_000)])];
  },
  'rebuilt inputs': (random, slots) => {
    const make = new FaultMaker(random, slots);
    const rebuild: Fault = { at: make.at, kind: 'rebuild inputs', forMs: random.between(0, 4_000) };
    return [rebuild, ...make.several(0, 1, [() => make.of('kill', 100, 6_000)])];
  },
  'lost facts': (random, slots) => {
    const make = new FaultMaker(random, slots);
    return [make.loseFacts(), ...make.several(0, 2, [() => make.of('kill', 100, 6_000), () => make.loseLive()])];
  },
  'stale reads': (random, slots) => {
    const make = new FaultMaker(random, slots);
    const others = [() => make.of('kill', 100, 6_000), () => make.loseLive(), () => make.staleTails()];
    return [make.lag(), ...make.several(1, 3, [() => make.lag(), ...others])];
  },
  reordering: (random, slots) => {
    const make = new FaultMaker(random, slots);
    return [
      make.reorder(),
      ...make.several(0, 3, [() => make.reorder(), () => make.loseLive(), () => make.of('kill', 100, 6_000)]),
    ];
  },
  clocks: (random, slots) => {
    const make = new FaultMaker(random, slots);
    return make.several(1, 4, [() => make.setClock(), () => make.setClock(), () => make.of('kill', 100, 6_000)]);
  },
  'two versions': twoVersions,
  [UPGRADE]: twoVersions,
  payloads: (random, slots) => {
    const make = new FaultMaker(random, slots);
    return [make.poison(), ...make.several(0, 1, [() => make.poison(), () => make.of('kill', 100, 6_000)])];
  },
  'full streams': (random, slots) => {
    const make = new FaultMaker(random, slots);
    return make.several(1, 2, [() => make.refuse()]);
  },
  webhooks: (random, slots) => {
    const make = new FaultMaker(random, slots);
    return [make.webhooks(), ...make.several(0, 2, [() => make.webhooks(), () => make.of('kill', 100, 6_000, 'notifier')])];
  },
  [GROUPS]: (random, slots, groups) => {
    const make = new FaultMaker(random, slots);
    const ofGroup = () => make.ofGroup(random.between(0, groups - 1));
    return [ofGroup(), ...make.several(0, 3, [ofGroup, () => make.of('kill', 100, 6_000), () => make.loseLive()])];
  },
  [MIXED]: (random, slots, groups) => {
    const make = new FaultMaker(random, slots);
    const ofGroup = () => make.ofGroup(random.between(0, groups - 1));
    return make.several(2, 6, [
      ...(groups > 1 ? [ofGroup] : []),
      () => make.of('kill', 100, 6_000),
      () => make.of('stop', 100, 1_000),
      () => make.of('freeze', 500, 12_000),
      () => make.of('stall', 500, 28_000),
      () => make.of('cut', 500, 25_000),
      () => make.of('lose acks', 500, 25_000),
      () => make.slow(),
      () => make.breakReads(),
      () => make.loseLive(),
      () => make.setClock(),
      () => make.reorder(),
      () => make.lag(),
      () => make.staleTails(),
      () => make.holdWrites('tasks'),
      () => make.refuse(),
      () => make.webhooks(),
    ]);
  },
};

/** Faults of servers and connections, which only log-jetstream sees. */
const WIRE_THEMES: Readonly<Record<string, Theme>> = {
  'server restarts': (random, slots, groups) => {
    const make = new FaultMaker(random, slots);
    const lose = () => make.loseFacts(random.between(0, groups - 1));
    return [make.restart(), ...make.several(0, 3, [() => make.restart(), lose, () => make.of('kill', 100, 6_000)])];
  },
  leaders: (random, slots) => {
    const make = new FaultMaker(random, slots);
    const others = [() => make.deposed(), () => make.of('kill', 100, 6_000), () => make.lag(), () => make.loseFacts()];
    return [make.deposed(), ...make.several(0, 3, others)];
  },
  'broken connections': (random, slots) => {
    const make = new FaultMaker(random, slots);
    const broken = () => make.broken();
    return [broken(), ...make.several(1, 4, [broken, broken, () => make.of('kill', 100, 6_000), () => make.breakReads()])];
  },
  'partial partitions': (random, slots) => {
    const make = new FaultMaker(random, slots);
    return [make.parted(), ...make.several(0, 3, [() => make.parted(), () => make.of('kill', 100, 6_000)])];
  },
  'forgetful servers': (random, slots) => {
    const make = new FaultMaker(random, slots);
    const forget = () => make.forget();
    const acks = () => make.of('lose acks', 500, 12_000);
    return [acks(), forget(), ...make.several(1, 4, [forget, forget, acks, () => make.of('freeze', 500, 12_000)])];
  },
  'all at once': (random, slots) => {
    const make = new FaultMaker(random, slots);
    return make.several(3, 7, [
      () => make.of('kill', 100, 6_000),
      () => make.of('freeze', 500, 12_000),
      () => make.of('stall', 500, 28_000),
      () => make.of('lose acks', 500, 25_000),
      () => make.broken(),
      () => make.parted(),
      () => make.forget(),
      () => make.restart(),
      () => make.deposed(),
      () => make.loseFacts(),
      () => make.lag(),
      () => make.holdWrites('tasks'),
      () => make.refuse(),
    ]);
  },
};

/** Seeds below this number do not choose them, so that the themes of earlier findings do not change. */
const LATER_THEMES_SEED_MIN = 80_000;
const LATER_WIRE_THEMES: Readonly<Record<string, Theme>> = {
  'lost tails': (random, slots) => {
    const make = new FaultMaker(random, slots);
    const others = [() => make.loseTails(), () => make.restart(), () => make.loseFacts(), () => make.of('kill', 100, 6_000)];
    return [make.loseTails(), ...make.several(0, 2, others)];
  },
  [LASTING_PARTITION]: (random, slots) => [new FaultMaker(random, slots).lastingPartition()],
};

/** Agents with steps. Seeds do not choose this theme by themselves, so that the runs of all other seeds do not change. */
const STEP_THEMES: Readonly<Record<string, Theme>> = {
  'stored steps': (random, slots) => {
    const make = new FaultMaker(random, slotsOf(slots, WRITERS, RELAYS));
    const kill = () => make.of('kill', 100, 3_000);
    const late = [
      () => make.of('stall', 500, 14_000),
      () => make.of('freeze', 500, 12_000),
      () => make.of('lose acks', 500, 12_000),
    ];
    return make.several(2, 6, [kill, kill, kill, ...late, () => make.loseLive(), () => make.breakReads()]);
  },
};

const GATHERED = 'gathered writes';
/** Chosen by name only, for the same reason. */
const GATHERED_THEMES: Readonly<Record<string, Theme>> = {
  [GATHERED]: random => {
    const slot = `${WRITERS}-1`;
    const write = (): Fault => ({
      at: random.between(1_500, 3_500),
      kind: 'break a write',
      slot,
      first: random.between(1, 2),
      endsAfterMs: random.between(0, 5),
      // A connection that is back at once takes later records of a task before the lost one is sent again.
      forMs: random.pick([random.between(5, 30), random.between(100, 3_000)]),
    });
    const acks = (): Fault => ({ at: random.between(1_500, 3_500), kind: 'lose acks', slot, forMs: random.between(5, 200) });
    return [write(), ...Array.from({ length: random.between(0, 3) }, () => random.pick([write, write, acks])())];
  },
};

/** Kinds and members of the next version are added above the wire. */
const ABOVE_THE_WIRE: ReadonlySet<string> = new Set(['two versions', UPGRADE]);
export const THEME_NAMES = Object.keys(THEMES);
export const WIRE_THEME_NAMES = [...Object.keys(WIRE_THEMES), ...Object.keys(LATER_WIRE_THEMES)];
export const STEP_THEME_NAMES = Object.keys(STEP_THEMES);
export const GATHERED_THEME_NAMES = Object.keys(GATHERED_THEMES);
export const NATS_THEME_NAMES = [...THEME_NAMES.filter(name => !ABOVE_THE_WIRE.has(name)), ...WIRE_THEME_NAMES];
