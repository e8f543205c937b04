import { isTerminal, type Message, type StreamResponse, type Task, textOf } from '@hopline/a2a';
import { type Fact, FORK_KEY, isVisible, parseCursor, type TaskAggregate } from '@hopline/events';
import { readStoredTask, verifyTask as verifyByReplay } from '@hopline/replay';
import { TURN_LANES_BYTES_MAX } from '@hopline/task';
import { placeHistory } from '../support/history/place-history.ts';
import { verifyHistory } from '../support/history/verify-history.ts';
import {
  historyOf,
  notified,
  type Report,
  type TaskHistory,
  textsByCall,
  type Violation,
  verifyAttempts,
  verifyCancel,
  verifyHops,
  verifyOpenedSteps,
  verifySteps,
  verifyTask,
} from '../support/task-promises.ts';
import type { AgentRuns } from './agent-runs.ts';
import type { Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { Coverage } from './coverage.ts';
import { type Fault, timesOf } from './faults.ts';
import type { Scenario } from './scenario.ts';
import type { Situations } from './situations.ts';
import { EPOCH_MS } from './virtual-clock.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

type RunEvidence = {
  scenario: Scenario;
  cluster: Cluster;
  clients: readonly Client[];
  runs: AgentRuns;
  receiver: WebhookReceiver;
  situations: Situations;
  coverage: Coverage;
  /** Whether every client, task, work item and webhook ended in time. */
  hasEnded: boolean;
  /** Milliseconds of the run. */
  endedAt: number;
  /** Timers that all processes have at the end. */
  pendingTimers?: number;
};

/** Limit of a task's aggregate in a record: its lanes plus the rest. */
const AGGREGATE_BYTES_MAX = TURN_LANES_BYTES_MAX + 64 * 1024;
/** Maximum length of a verdict in a report. */
const DETAIL_CHARS_MAX = 1_500;

/** Verifies the promises of the README on the result of a run: the log, what agents did, and what clients and webhooks received. */
export async function verify(evidence: RunEvidence): Promise<Violation[]> {
  const violations: Violation[] = [];
  const histories = new Map<Client, TaskHistory>();
  const report = (rule: string, detail: string) => violations.push({ rule, detail });
  for (const client of evidence.clients) {
    try {
      const history = client.taskId === undefined ? undefined : await historyOf(evidence.cluster.log.facts, client.taskId);
      if (history === undefined) continue;
      histories.set(client, history);
      evidence.coverage.addTask(history.facts);
      evidence.situations.addTask(history.facts);
    } catch (error) {
      report('the log of a task can be read from its start', `${client.plan.name}: ${String(error)}`);
    }
  }
  if (!evidence.hasEnded) await verifyLiveness(evidence, histories, report);
  const forgottenAt = evidence.scenario.faults.filter(({ kind }) => kind === 'forget deliveries').map(({ at }) => at);
  const onRepeated = () => evidence.situations.add('an attempt runs twice at once after its deliveries were forgotten');
  verifyAttempts(evidence.runs.all, report, { at: forgottenAt, onRepeated });
  verifySteps(evidence.runs.all, report);
  const canLoseProgress = evidence.scenario.faults.some(
    fault => fault.kind === 'lose tails' && fault.tails.some(({ part }) => part === 'pushProgress'),
  );
  for (const [client, history] of histories) {
    if (verifyOpenedSteps(client, history, report)) evidence.coverage.add('fold', 'a failed step of an agent is open again');
    verifyTask(client, history, { runs: evidence.runs.all, received: evidence.receiver.received, canLoseProgress }, report);
    const canceled = { runs: evidence.runs.all, inputs: evidence.cluster.log.inputs, now: evidence.endedAt };
    await verifyHops(client, evidence.cluster.log, history.aggregate.taskId, report);
    await verifyCancel(client, history, { ...canceled, faults: timesOf(evidence.scenario.faults) }, report);
    verifyFailures(client, history, evidence, report);
    verifyFork(client, histories, history, evidence, report);
  }
  verifyOutside(evidence, report);
  for (const { findings } of evidence.clients) violations.push(...findings);
  const copies = await verifyCopies(evidence, histories, report);
  verifyOperations(evidence, [...histories.values(), ...copies], report);
  await verifyReplay(evidence, report);
  verifyBounds(evidence, histories, report);
  for (const what of evidence.cluster.servers.denied) report('no user of the log is refused what its service needs', what);
  for (const what of evidence.cluster.servers.unsupported) report('the double of nats-server knows each request', what);
  return violations;
}

/** A process that is partitioned from the log does not delay tasks that do not need it. */
function verifyOutside({ clients, situations }: RunEvidence, report: Report): void {
  for (const { plan, doneAt = Number.POSITIVE_INFINITY, activity } of clients) {
    if (plan.outside === undefined) continue;
    if (doneAt < plan.outside.endsBy) situations.add('a task begins and ends while a process outside of it is parted');
    else report('a task goes on while a process outside of it is parted', `${plan.name}: its client ${activity} at ${doneAt}`);
  }
}

/**
 * The agents of a fork get the messages of its origin up to the cursor and the text of its calls until then, and no later message. The fork names its
 * origin, which has no message of the fork.
 */
function verifyFork(
  { plan, origin }: Client,
  histories: ReadonlyMap<Client, TaskHistory>,
  fork: TaskHistory,
  { runs, situations }: RunEvidence,
  report: Report,
): void {
  const from = origin && histories.get(origin.client);
  if (origin === undefined || from === undefined) return;
  const rule = 'a fork continues its origin from the cursor';
  const point = fork.view?.task.metadata?.[FORK_KEY];
  if (JSON.stringify(point) !== JSON.stringify(origin.point)) report(rule, `${plan.name} names ${JSON.stringify(point)}`);
  const known = factsUpTo(from.facts, parseCursor(origin.point.cursor)?.generation ?? 0);
  const asked = known.flatMap(messageIdsOf);
  const calls = new Set(known.flatMap(fact => (fact.kind === 'call.started' ? [fact.call] : [])));
  // A plan is not part of an answer.
  const texts = [...textsByCall(known)].flatMap(([call, text]) => (calls.has(call) && text !== '' ? [text] : []));
  for (const { id, history = [] } of runs.all.filter(({ messageId }) => messageId === `${plan.name}-m1`)) {
    const ofOrigin = history.filter(({ taskId }) => taskId === from.aggregate.taskId);
    const detail = `${plan.name}, run ${id}: ${JSON.stringify(history.map(brief))}, not ${JSON.stringify([asked, texts])}`;
    const users = history.filter(({ role }) => role === 'ROLE_USER').map(({ messageId }) => messageId);
    if (users.slice(-asked.length).join() !== asked.join()) report(rule, detail);
    const answers = ofOrigin.filter(({ role }) => role === 'ROLE_AGENT').map(({ parts }) => textOf(parts));
    const all = answers.join('');
    if (!texts.every(text => all.includes(text))) report(rule, detail);
    if (texts.length > 0) situations.add('the agents of a fork get text of its origin');
  }
  const later = from.facts.flatMap(messageIdsOf).find(messageId => messageId.startsWith(`${plan.name}-`));
  if (later !== undefined) report('a fork does not change its origin', `${plan.name}: ${later}`);
}

/** An imported task has the messages, the text and the state of the exported one. Resolves with the imported tasks. */
async function verifyCopies(
  { clients, cluster }: RunEvidence,
  histories: ReadonlyMap<Client, TaskHistory>,
  report: Report,
): Promise<TaskHistory[]> {
  const copies: TaskHistory[] = [];
  for (const client of clients) {
    if (client.copyId === undefined) continue;
    const copy = await historyOf(cluster.log.facts, client.copyId);
    const [one, other] = [histories.get(client), copy].map(history => contentOf(history?.view?.task));
    if (one !== other) report('an imported task is the exported one', `${client.plan.name}: ${other}, not ${one}`);
    if (copy !== undefined) copies.push(copy);
  }
  return copies;
}

function contentOf(task: Task | undefined): string {
  const messages = task?.history?.map(({ messageId }) => messageId);
  // The ids of artifacts follow from the id of the task.
  const texts = task?.artifacts?.map(({ name, parts }) => [name, textOf(parts)]);
  return JSON.stringify([messages, texts, task?.status.state, task?.status.timestamp]);
}

/** The facts up to and including the one with the generation. */
function factsUpTo(facts: readonly Fact[], generation: number): readonly Fact[] {
  const at = facts.findIndex(fact => isVisible(fact) && fact.generation >= generation);
  return at < 0 ? facts : facts.slice(0, at + 1);
}

function messageIdsOf(fact: Fact): string[] {
  if (fact.kind === 'message.received') return [fact.message.messageId];
  return fact.kind === 'task.created' ? (fact.event.task.history ?? []).map(({ messageId }) => messageId) : [];
}

const brief = ({ role, messageId, parts }: Message) => `${role} ${messageId}: ${textOf(parts)}`;

/** How long an ingress may show facts that the log has lost, and a relay may take to fold their inputs again, in milliseconds. */
const REFOLD_MS_MAX = 20_000;

/** Judges what the clients saw. */
function verifyOperations({ clients, scenario }: RunEvidence, histories: readonly TaskHistory[], report: Report): void {
  const logged = new Map(histories.map(history => [history.aggregate.taskId, history]));
  const losses = scenario.faults
    .filter(({ kind }) => kind === 'lose facts')
    .map(({ at }) => ({ startedAt: at, endedAt: at + REFOLD_MS_MAX }));
  const finalStates = new Map([...logged].map(([taskId, { aggregate }]) => [taskId, aggregate.state]));
  const recorded = clients.flatMap(({ history }) => history);
  const placed = placeHistory(recorded, taskId => logged.get(taskId)?.facts, losses.length > 0, report);
  verifyHistory(placed, { losses, finalStates }, report);
}

/** The facts of every task must follow from its inputs, whichever relays died between them. */
async function verifyReplay({ clients, cluster }: RunEvidence, report: Report): Promise<void> {
  for (const { taskId, plan } of clients) {
    const task = taskId === undefined ? undefined : await readStoredTask(cluster.log, taskId);
    if (task === undefined) continue;
    const verdict = verifyByReplay(withoutNext(task));
    if (verdict.verdict !== 'same' && verdict.verdict !== 'expired')
      report('the facts of a task follow from its inputs', `${plan.name}: ${JSON.stringify(verdict).slice(0, DETAIL_CHARS_MAX)}`);
  }
}

/** A copy without the members that a process of the next version adds. Most runs have no such process, and a reviver is slow. */
function withoutNext<T>(task: T): T {
  const text = JSON.stringify(task);
  return JSON.parse(text, text.includes('"next":') ? (name, value: unknown) => (name === 'next' ? undefined : value) : undefined);
}

/** Everything ends once faults have stopped. */
async function verifyLiveness(
  { clients, cluster, receiver, runs }: RunEvidence,
  histories: Map<Client, TaskHistory>,
  report: Report,
): Promise<void> {
  const rule = 'everything ends once faults have stopped';
  for (const client of clients) {
    const { plan, taskId, activity, isDone } = client;
    const aggregate = histories.get(client)?.aggregate;
    if (!isDone) report(rule, `client of ${plan.name} ${activity}; task ${taskId} is ${aggregate?.state}`);
    else if (aggregate === undefined || !isTerminal(aggregate.state)) report(rule, `task of ${plan.name} is ${aggregate?.state}`);
    else {
      const index = (await cluster.log.tasks.get(aggregate.taskId))?.value;
      if (index?.generation !== aggregate.generation)
        report('the index shows the newest state', `${plan.name}: ${index?.state} ${index?.generation}, not ${aggregate.state}`);
      const missing = await undeliveredOf(client, aggregate, cluster, receiver);
      if (missing !== undefined) report('an acknowledged webhook gets every event', `${plan.name}: ${missing}`);
    }
  }
  for (const { id, agent } of runs.all.filter(({ endedAt }) => endedAt === undefined))
    report(rule, `run ${id} of ${agent} goes on`);
  if (cluster.servers.openItems > 0) report(rule, `${cluster.servers.openItems} work items are open`);
}

/** Describes the events that an acknowledged webhook has not received; undefined when it has all of them. */
export async function undeliveredOf(
  { isWebhookAcknowledged, webhookUrl, plan }: Client,
  { taskId, generation }: TaskAggregate,
  { log }: Cluster,
  { received }: WebhookReceiver,
): Promise<string | undefined> {
  if (!isWebhookAcknowledged) return undefined;
  const [config] = await log.pushConfigs.under(taskId);
  // A webhook that was set after the last event gets no notifications.
  const ofWebhook = received.filter(({ url }) => url === webhookUrl);
  // No event may follow the end, even if the log lost the end and the relay folded it again.
  if (ofWebhook.some(({ body }) => isEnd(notified(body, plan.dialect?.name)))) return undefined;
  const delivered = Math.max(config?.value.after ?? 0, ...ofWebhook.map(one => one.generation));
  return delivered >= generation ? undefined : `events up to ${delivered} of ${generation}`;
}

function isEnd(event: StreamResponse | undefined): boolean {
  if (event === undefined || 'message' in event || 'artifactUpdate' in event) return false;
  return isTerminal('task' in event ? event.task.status.state : event.statusUpdate.status.state);
}

/** Faults that may cost an attempt of a supervisor or an agent. */
const DISRUPTIONS: ReadonlySet<Fault['kind']> = new Set([
  'kill',
  'stop',
  'freeze',
  'stall',
  'cut',
  'lose acks',
  'slow',
  'break reads',
  'refuse writes',
  'hold writes',
  'reorder',
  'lag',
  'upgrade',
  'downgrade',
  'rebuild inputs',
  'lose facts',
  'group away',
  'restart servers',
  'forget ids',
  'forget deliveries',
  'deposed leader',
  'half open',
  'slow consumer',
  'partial partition',
  'lose tails',
]);
/** An agent that was up for this long is registered. */
const REGISTERED_MS = 4_000;

/** A failure must name its reason, and the script or the faults of the run must explain that reason. */
function verifyFailures({ plan }: Client, { facts, aggregate }: TaskHistory, evidence: RunEvidence, report: Report): void {
  const { faults } = evidence.scenario;
  const scripts = plan.turns.flatMap(turn => Object.values(turn.scripts));
  const isDisrupted = faults.some(({ kind }) => DISRUPTIONS.has(kind));
  const losesWork = faults.some(fault => fault.kind === 'lose tails' && fault.tails.some(({ part }) => part === 'work'));
  const explained: [RegExp, (at: number) => boolean][] = [
    [/the script wants it/, () => scripts.some(({ end }) => end.startsWith('fails'))],
    [/auth timeout/, () => scripts.some(({ credentials }) => credentials !== undefined)],
    [/not answer|no answer|timed out|input timeout/i, () => scripts.some(({ end }) => end === 'asks')],
    [/attempts exhausted|failed several times/, () => isDisrupted],
    // In some runs an agent is silent from one copy of the facts to the next, because copies are so frequent.
    [/no worker has continued the task/, () => evidence.scenario.settings.copyForwardAfterMs !== undefined],
    [
      /not available|the agent is gone|no agent is available|no skill of the available agents/,
      at => wasAgentAway(plan, evidence, at),
    ],
    [
      /larger than the log accepts|too large|does not fit|have more than \d+ bytes/,
      () => scripts.some(({ openArtifacts }) => openArtifacts !== undefined),
    ],
    // The item of an agent that has begun is not queued again.
    [
      /the work item of the call is gone$/,
      at => losesWork && evidence.runs.all.some(run => run.taskId === aggregate.taskId && run.startedAt <= at),
    ],
    // The worker that had begun the turn is gone as well.
    [
      /^the work item of the turn is gone$/,
      () => losesWork && faults.some(({ kind }) => kind !== 'lose tails' && DISRUPTIONS.has(kind)),
    ],
    [/lost|missing|gap|removed/i, () => faults.some(({ kind }) => kind === 'outlast retention' || kind === 'rebuild inputs')],
  ];
  for (const fact of facts) {
    if (fact.kind !== 'status.changed' && fact.kind !== 'call.ended') continue;
    const { state, reason } =
      fact.kind === 'call.ended'
        ? { state: fact.state, reason: fact.reason }
        : { state: fact.event.statusUpdate.status.state, reason: fact.event.statusUpdate.metadata?.reason };
    if (state !== 'TASK_STATE_FAILED') continue;
    if (typeof reason !== 'string') report('a failure names its reason', `${plan.name}: ${JSON.stringify(fact)}`);
    else if (!explained.some(([pattern, isPossible]) => pattern.test(reason) && isPossible(fact.at - EPOCH_MS)))
      report('a failure has a cause in the run', `${plan.name} (${aggregate.state}): ${reason}`);
  }
}

/** Whether an agent that the task needs had no replica for a while before `at`, or the registry was hard to reach. */
function wasAgentAway(plan: Client['plan'], { scenario, cluster }: RunEvidence, at: number): boolean {
  const isHardToReach = scenario.faults.some(
    fault =>
      DISRUPTIONS.has(fault.kind) &&
      fault.kind !== 'kill' &&
      fault.kind !== 'stop' &&
      fault.kind !== 'upgrade' &&
      fault.kind !== 'downgrade' &&
      (!('slot' in fault) || /^[*]|^agent|^supervisor/.test(fault.slot)),
  );
  const isUp = (agent: string) =>
    cluster.incarnations.some(
      ({ slot, startedAt = Number.POSITIVE_INFINITY, endedAt = Number.POSITIVE_INFINITY }) =>
        slot.startsWith(`agent.${agent}`) && startedAt <= at - REGISTERED_MS && endedAt >= at,
    );
  return isHardToReach || plan.turns.some(({ agents }) => !agents.every(isUp));
}

function verifyBounds(
  { cluster, hasEnded, pendingTimers = 0 }: RunEvidence,
  histories: ReadonlyMap<Client, TaskHistory>,
  report: Report,
): void {
  for (const [{ plan }, { aggregateBytesMax }] of histories)
    if (aggregateBytesMax > AGGREGATE_BYTES_MAX)
      report('the aggregate of a task is bounded', `${plan.name}: ${aggregateBytesMax} bytes`);
  if (!hasEnded) return;
  if (pendingTimers > cluster.servers.timersAtRestMax)
    report('what a task needs in memory ends with it', `${pendingTimers} timers are pending`);
  for (const { servers, process } of cluster.ingresses())
    for (const { streams } of Object.values(servers ?? {}))
      if (streams.count > 0) report('what a client opened is closed at the end', `${process.name}: ${streams.count} streams`);
}
