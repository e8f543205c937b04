import { type Artifact, isTerminal, type StreamResponse, textOf } from '@hopline/a2a';
import { type Fact, isVisible, type TaskAggregate, type VisibleFact } from '@hopline/events';
import { readTask } from '@hopline/log';
import { LANES_BYTES_MAX, project, type TaskView } from '@hopline/task';
import type { Client, ViewerLog } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { Fault } from './faults.ts';
import type { Scenario } from './scenario.ts';
import { type AgentRun, type AgentRuns, OPEN_ARTIFACT } from './scripted-agent.ts';
import { EPOCH_MS } from './virtual-clock.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** A promise that a run broke. `rule` is a sentence of this file, the same for all runs. */
export type Violation = { rule: string; detail: string };

export type RunEvidence = {
  scenario: Scenario;
  cluster: Cluster;
  clients: readonly Client[];
  runs: AgentRuns;
  receiver: WebhookReceiver;
  /** Every client, task, work item and webhook came to its end in time. */
  hasEnded: boolean;
  /** Timers of all processes at the end. */
  pendingTimers?: number;
};

type TaskHistory = { aggregate: TaskAggregate; facts: Fact[]; view: TaskView | undefined; aggregateBytesMax: number };

/** Of a task's aggregate in a record: its lanes, and what it holds beside them. */
const AGGREGATE_BYTES_MAX = LANES_BYTES_MAX + 64 * 1024;
/** Timers of all processes at rest: at most 102 in 60 runs. What tasks and connections leave behind comes on top. */
const TIMERS_AT_REST_MAX = 160;

/** The promises of the README, verified on what a run left: the log, what agents did, what clients and webhooks received. */
export async function verify(evidence: RunEvidence): Promise<Violation[]> {
  const violations: Violation[] = [];
  const histories = new Map<Client, TaskHistory>();
  const report = (rule: string, detail: string) => violations.push({ rule, detail });
  for (const client of evidence.clients) {
    try {
      const history = client.taskId === undefined ? undefined : await historyOf(evidence.cluster, client.taskId);
      if (history !== undefined) histories.set(client, history);
    } catch (error) {
      report('the log of a task can be read from its start', `${client.plan.name}: ${String(error)}`);
    }
  }
  if (!evidence.hasEnded) await verifyLiveness(evidence, histories, report);
  verifyAttempts(evidence.runs, report);
  for (const [client, history] of histories) {
    verifyGenerations(client, history, report);
    verifyMessages(client, history, report);
    verifyTexts(client, history, evidence.runs, report);
    verifyFailures(client, history, evidence, report);
    for (const viewer of client.viewers) verifyViewer(viewer, history, report);
    verifyWebhook(client, history, evidence.receiver, report);
  }
  verifyBounds(evidence, histories, report);
  return violations;
}

type Report = (rule: string, detail: string) => void;

async function historyOf({ store }: Cluster, taskId: string): Promise<TaskHistory | undefined> {
  const newest = await store.facts.last(taskId);
  if (newest === undefined) return undefined;
  const facts: Fact[] = [];
  let view: TaskView | undefined;
  let aggregateBytesMax = 0;
  for await (const { record } of readTask(store.facts, newest)) {
    aggregateBytesMax = Math.max(aggregateBytesMax, Buffer.byteLength(JSON.stringify(record.aggregate)));
    for (const fact of record.facts) {
      facts.push(fact);
      view = project(view, fact);
    }
  }
  return { aggregate: newest.record.aggregate, facts, view, aggregateBytesMax };
}

/** Everything ends once faults have stopped. */
async function verifyLiveness(
  { clients, cluster, receiver }: RunEvidence,
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
      const index = (await cluster.store.tasks.get(aggregate.taskId))?.value;
      if (index?.generation !== aggregate.generation)
        report('the index shows the newest state', `${plan.name}: ${index?.state} ${index?.generation}, not ${aggregate.state}`);
      const missing = await undeliveredOf(client, aggregate, cluster, receiver);
      if (missing !== undefined) report('an acknowledged webhook gets every event', `${plan.name}: ${missing}`);
    }
  }
  if (cluster.broker.size > 0) report(rule, `${cluster.broker.size} work items are open`);
}

/** What an acknowledged webhook has not received; undefined when it has everything. */
export async function undeliveredOf(
  { isWebhookAcknowledged, webhookUrl }: Client,
  { taskId, generation }: TaskAggregate,
  { store }: Cluster,
  { received }: WebhookReceiver,
): Promise<string | undefined> {
  if (!isWebhookAcknowledged) return undefined;
  const [config] = await store.pushConfigs.under(taskId);
  // A webhook that was set after the last event gets none.
  const delivered = Math.max(
    config?.value.after ?? 0,
    ...received.filter(({ url }) => url === webhookUrl).map(one => one.generation),
  );
  return delivered >= generation ? undefined : `events up to ${delivered} of ${generation}`;
}

function verifyAttempts({ all }: AgentRuns, report: Report): void {
  const byAttempt = Map.groupBy(all, ({ agent, messageId, attempt }) => `${agent} ${messageId} attempt ${attempt}`);
  for (const [attempt, runs] of byAttempt) {
    for (const [index, run] of runs.entries())
      for (const other of runs.slice(index + 1))
        if (other.startedAt < (run.endedAt ?? Number.POSITIVE_INFINITY))
          report('one attempt of an agent never runs twice at once', `${attempt}: runs ${run.id} and ${other.id}`);
  }
}

function verifyGenerations({ plan }: Client, { facts, aggregate }: TaskHistory, report: Report): void {
  const visible = facts.filter(isVisible);
  const wrong = visible.findIndex((fact, index) => fact.generation !== index + 1);
  if (wrong >= 0) report('generations are 1..n', `${plan.name}: generation ${visible[wrong]!.generation} at place ${wrong + 1}`);
  const earlier = facts.findIndex((fact, index) => index > 0 && fact.at < facts[index - 1]!.at);
  if (earlier >= 0) report('the times of facts never decrease', `${plan.name}: fact ${earlier + 1}, ${facts[earlier]!.kind}`);
  const ends = visible.filter(isEnd);
  if (isTerminal(aggregate.state) && (ends.length !== 1 || visible.at(-1) !== ends[0]))
    report('one terminal event, last', `${plan.name}: ${ends.length} terminal events, last is ${visible.at(-1)?.kind}`);
}

function isEnd(fact: VisibleFact): boolean {
  return fact.kind === 'status.changed' && isTerminal(fact.event.statusUpdate.status.state);
}

function verifyMessages({ plan, acknowledged }: Client, { aggregate, view }: TaskHistory, report: Report): void {
  for (const messageId of acknowledged) {
    const count = view?.task.history?.filter(message => message.messageId === messageId).length ?? 0;
    if (count !== 1) report('an acknowledged message is in its task once', `${plan.name}: ${messageId} is in ${count} times`);
  }
  const cancels = plan.cancelAfterMs !== undefined;
  if (aggregate.state === 'TASK_STATE_CANCELED' && !cancels) report('only its client cancels a task', plan.name);
}

/** The text of each call is that of one run of its agent: whole if the call completed, else the beginning of it. */
function verifyTexts({ plan }: Client, { facts, aggregate, view }: TaskHistory, runs: AgentRuns, report: Report): void {
  const agentOf = new Map<string, string>();
  const completed = new Set<string>();
  for (const fact of facts) {
    if (fact.kind === 'call.started') agentOf.set(fact.call, fact.agent);
    if (fact.kind === 'call.ended' && fact.state === 'TASK_STATE_COMPLETED') completed.add(fact.call);
  }
  const texts = textsByCall(facts);
  for (const [call, agent] of agentOf) {
    const text = texts.get(call) ?? '';
    const turn = Number(call.split('-')[1]);
    const own = runs.all.filter(run => run.agent === agent && run.messageId === `${plan.name}-m${turn}`);
    const fits = (run: AgentRun) => (completed.has(call) ? text === run.fullText : run.tokens.join('').startsWith(text));
    if ((text !== '' || completed.has(call)) && !own.some(fits))
      report(
        completed.has(call) ? 'the text of a call is that of one run, whole' : 'the text of a call is the beginning of one run',
        `${plan.name} ${call} of ${agent} (task ${aggregate.state}): ${JSON.stringify(text)}`,
      );
  }
  if (plan.profile !== 'caipe' || aggregate.state !== 'TASK_STATE_COMPLETED') return;
  const ofTurn = [...texts].filter(([call]) => call.startsWith(`call-${aggregate.turn}-`)).map(([, text]) => text);
  const result = (view?.task.artifacts ?? []).findLast(({ name }) => name === 'partial_result');
  if (ofTurn.join('') !== textOfArtifact(result))
    report('the result is the text of the calls', `${plan.name}: ${JSON.stringify(textOfArtifact(result))}`);
}

function textOfArtifact(artifact: Artifact | undefined): string {
  return textOf(artifact?.parts ?? []);
}

/** Streamed text by call, in the order of the first chunk. */
function textsByCall(facts: readonly Fact[]): Map<string, string> {
  const lanes = new Map<string, { call: string; text: string; isStreamed: boolean }>();
  for (const fact of facts) {
    if (fact.kind !== 'artifact.updated') continue;
    const { artifact, append = false } = fact.event.artifactUpdate;
    if (artifact.name?.startsWith(OPEN_ARTIFACT)) continue;
    const lane = lanes.get(fact.lane) ?? { call: fact.producer, text: '', isStreamed: false };
    lane.text = (append ? lane.text : '') + textOf(artifact.parts);
    lane.isStreamed ||= fact.chunk !== undefined;
    lanes.set(fact.lane, lane);
  }
  const texts = new Map<string, string>();
  for (const { call, text, isStreamed } of lanes.values()) if (isStreamed) texts.set(call, (texts.get(call) ?? '') + text);
  return texts;
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
]);
/** An agent that was up for this long is registered, milliseconds. */
const REGISTERED_MS = 4_000;

/** A failure names its reason, and the reason is one that the script or the faults of the run explain. */
function verifyFailures({ plan }: Client, { facts, aggregate }: TaskHistory, evidence: RunEvidence, report: Report): void {
  const { faults } = evidence.scenario;
  const scripts = plan.turns.flatMap(turn => Object.values(turn.scripts));
  const isDisrupted = faults.some(({ kind }) => DISRUPTIONS.has(kind));
  const explained: [RegExp, (at: number) => boolean][] = [
    [/the script wants it/, () => scripts.some(({ end }) => end.startsWith('fails'))],
    [/not answer|no answer|timed out|timeout/i, () => scripts.some(({ end }) => end === 'asks')],
    [/attempts exhausted|failed several times/, () => isDisrupted],
    // Some runs copy so often that an agent is silent from one copy of the facts to the next.
    [/no worker has continued the task/, () => evidence.scenario.settings.copyForwardAfterMs !== undefined],
    [/not available|no agent is available|no skill of the available agents/, at => wasAgentAway(plan, evidence, at)],
    [
      /larger than the log accepts|too large|does not fit|have more than \d+ bytes/,
      () => scripts.some(({ openArtifacts }) => openArtifacts !== undefined),
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

/** Each cursor once, in order, without a gap that was not reported, and each event as the log has it. */
function verifyViewer({ name, frames }: ViewerLog, { facts }: TaskHistory, report: Report): void {
  const stored = new Map(facts.filter(isVisible).map(fact => [fact.generation, JSON.stringify(fact.event)]));
  let next: number | undefined;
  let gapTo: number | undefined;
  for (const frame of frames) {
    if (frame.kind === 'gap') {
      gapTo = frame.to;
      continue;
    }
    if (frame.kind === 'snapshot') {
      if (next !== undefined && frame.generation < next - 1) report('a viewer never goes back', `${name}: ${frame.generation}`);
      next = frame.generation + 1;
      gapTo = undefined;
      continue;
    }
    const expected = gapTo === undefined ? (next ?? 1) : gapTo + 1;
    if (frame.generation !== expected)
      report('a viewer sees each cursor once and in order', `${name}: generation ${frame.generation}, expected ${expected}`);
    if (stored.get(frame.generation) !== frame.json)
      report('a viewer sees what the log has', `${name}: generation ${frame.generation}: ${frame.json}`);
    next = frame.generation + 1;
    gapTo = undefined;
  }
}

/** Every event in order; a repetition has the same cursor and content. */
function verifyWebhook(client: Client, { facts, aggregate }: TaskHistory, { received }: WebhookReceiver, report: Report): void {
  const own = received.filter(({ url }) => url === client.webhookUrl);
  const bodies = new Map<number, string>();
  let last = 0;
  for (const { generation, body } of own) {
    const before = bodies.get(generation);
    if (before !== undefined && before !== body)
      report('a repeated notification has the same content', `${client.plan.name}: generation ${generation}`);
    else if (before === undefined && generation < last)
      report('notifications are in order', `${client.plan.name}: ${generation} after ${last}`);
    bodies.set(generation, body);
    last = Math.max(last, generation);
  }
  if (!client.isWebhookAcknowledged || client.plan.webhook !== 'with the message' || last < aggregate.generation) return;
  const events = [...bodies].sort(([a], [b]) => a - b).map(([, body]) => JSON.parse(body) as StreamResponse);
  const delivered = textOfEvents(events);
  const stored = textOfEvents(facts.filter(isVisible).map(({ event }) => event));
  if (delivered !== stored)
    report('an acknowledged webhook gets every event', `${client.plan.name}: ${JSON.stringify(delivered)}`);
}

/** Text of all artifacts, in order of the events. */
function textOfEvents(events: readonly StreamResponse[]): string {
  const texts = new Map<string, string>();
  for (const event of events) {
    if (!('artifactUpdate' in event)) continue;
    const { artifact, append } = event.artifactUpdate;
    texts.set(artifact.artifactId, (append ? (texts.get(artifact.artifactId) ?? '') : '') + textOf(artifact.parts));
  }
  return JSON.stringify([...texts]);
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
  if (pendingTimers > TIMERS_AT_REST_MAX)
    report('what a task needs in memory ends with it', `${pendingTimers} timers are pending`);
  for (const { servers, process } of cluster.ingresses())
    for (const { streams } of Object.values(servers ?? {}))
      if (streams.count > 0) report('what a client opened is closed at the end', `${process.name}: ${streams.count} streams`);
}
