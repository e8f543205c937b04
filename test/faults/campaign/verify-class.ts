import { setTimeout as sleep } from 'node:timers/promises';
import { isTerminal } from '@hopline/a2a';
import { isVisible } from '@hopline/events';
import { readStoredTask, verifyTask as verifyByReplay } from '@hopline/replay';
import { isBalanced, reportTask } from '@hopline/task-audit';
import type { AgentRun } from '../../support/agents/scripted-agent.ts';
import type { RecordedHistory } from '../../support/history/history.ts';
import { placeHistory } from '../../support/history/place-history.ts';
import { type HistoryReport, verifyHistory } from '../../support/history/verify-history.ts';
import {
  type FaultTime,
  historyOf,
  type Notification,
  type Report,
  type TaskHistory,
  type Violation,
  verifyAttempts,
  verifyCancel,
  verifyHops,
  verifyOpenedSteps,
  verifySteps,
  verifyTask,
} from '../../support/task-promises.ts';
import type { CampaignCluster } from './campaign-cluster.ts';
import type { CampaignClient } from './client.ts';
import { EXHAUSTED, type FaultClass } from './fault-classes.ts';

export type ClassEvidence = {
  cluster: CampaignCluster;
  faultClass: FaultClass;
  clients: readonly CampaignClient[];
  runs: readonly AgentRun[];
  /** When the runs were read, and when faults were in effect, by the clock `monotonicMs`. */
  now: number;
  faults: readonly FaultTime[];
  /** Notifications that the webhooks have taken so far. */
  received: () => readonly Notification[];
  /** Requests of all clients, and what came back. */
  history: RecordedHistory;
};

export type Verdict = {
  violations: (Violation & { task: string })[];
  /** Tasks by their last state. */
  states: Record<string, number>;
  /** Failures of tasks and calls by reason, except those that an agent's script asks for. */
  failures: Record<string, number>;
  /** Number of tasks whose inputs and facts were compared. */
  audited: number;
  /** Number of audits that were incomplete, because inputs had left the log. */
  auditsIncomplete: number;
  /** Events that viewers received. */
  events: number;
  /** Streams that viewers opened again. */
  reconnects: number;
};

const TASKS_AT_ONCE = 8;
/** How long webhooks, the index and the inputs of ended agents may take after the end of a task. */
const SETTLE_MS_MAX = 60_000;
const POLL_MS = 200;
/**
 * An answer to a question is sent to a remote agent once. If the attempt that sent it is lost, the next attempt shows the text in the
 * agent's task. If the agent keeps no text there, that attempt shows the beginning and fails.
 */
const UNPROVED = /the stream ended without a terminal state/;
/** Reasons of failures in the script; the text of a remote agent's failure is not passed on. */
const BY_SCRIPT = /the script wants it|the agent failed$/;

/** Verifies every promise for all tasks of a class. */
export async function verifyClass(evidence: ClassEvidence): Promise<Verdict> {
  const verdict: Verdict = {
    violations: [],
    states: {},
    failures: {},
    audited: 0,
    auditsIncomplete: 0,
    events: 0,
    reconnects: 0,
  };
  const byTask = Map.groupBy(evidence.runs, ({ messageId }) => messageId.replace(/-m\d+$/, ''));
  const logged = new Map<string, TaskHistory>();
  const queue = evidence.clients.values();
  const worker = async () => {
    for (const client of queue) {
      const history = await verifyClient(client, byTask.get(client.plan.name) ?? [], evidence, verdict);
      if (history !== undefined) logged.set(history.aggregate.taskId, history);
    }
  };
  await Promise.all(Array.from({ length: TASKS_AT_ONCE }, worker));
  verifyOperations(evidence, logged, verdict);
  return verdict;
}

/** Judges what the clients saw. If callers are used again, their lists also show tasks of earlier classes, which are left out. */
function verifyOperations({ history }: ClassEvidence, logged: ReadonlyMap<string, TaskHistory>, { violations }: Verdict): void {
  const renamed = history.map(operation =>
    operation.kind === 'list' ? { ...operation, tasks: operation.tasks.filter(({ task }) => logged.has(task.id)) } : operation,
  );
  const finalStates = new Map([...logged].map(([taskId, { aggregate }]) => [taskId, aggregate.state]));
  const report: HistoryReport = (rule, detail, task) => violations.push({ rule, detail, task });
  const placed = placeHistory(renamed, taskId => logged.get(taskId)?.facts, false, report);
  verifyHistory(placed, { finalStates }, report);
}

/** Resolves with the log's records of the task; undefined if they cannot be read. */
async function verifyClient(
  client: CampaignClient,
  runs: readonly AgentRun[],
  evidence: ClassEvidence,
  verdict: Verdict,
): Promise<TaskHistory | undefined> {
  const { name } = client.plan;
  const report: Report = (rule, detail) => verdict.violations.push({ rule, detail, task: client.taskId ?? '' });
  for (const viewer of client.viewers) {
    verdict.events += viewer.frames.length;
    verdict.reconnects += viewer.reconnects;
  }
  try {
    const history = client.taskId === undefined ? undefined : await settled(client, client.taskId, evidence, report);
    const state = history?.aggregate.state ?? 'none';
    verdict.states[state] = (verdict.states[state] ?? 0) + 1;
    if (!client.isDone) report('everything ends once faults have stopped', `${name} ${client.activity}; its task is ${state}`);
    if (history === undefined) return undefined;
    if (evidence.faultClass.overlapsRuns !== true) verifyAttempts(runs, report);
    verifySteps(evidence.faultClass.overlapsRuns === true ? withoutRepeated(runs) : runs, report);
    verifyOpenedSteps(client, history, report);
    verifyTask(client, history, { runs, received: evidence.received(), canLoseProgress: false }, report);
    await verifyCancel(client, history, { ...evidence, inputs: evidence.cluster.log.inputs, runs }, report);
    verifyFailures(client, history, evidence.faultClass, verdict, report);
    await verifyAudit(client, evidence, verdict, report);
    await verifyHops(client, evidence.cluster.log, history.aggregate.taskId, report);
    return history;
  } catch (error) {
    report('the log of a task can be read from its start', `${name}: ${String(error)}`);
    return undefined;
  }
}

/** Leaves out the attempts that ran twice, because until one of the two runs has written, both may run a step. */
function withoutRepeated(runs: readonly AgentRun[]): AgentRun[] {
  const byAttempt = Map.groupBy(runs, ({ agent, messageId, attempt }) => `${agent} ${messageId} ${attempt}`);
  return [...byAttempt.values()].flatMap(same => (same.length === 1 ? same : []));
}

/** The history of a task when its webhook and the index have caught up. */
async function settled(
  client: CampaignClient,
  taskId: string,
  { cluster, received }: ClassEvidence,
  report: Report,
): Promise<TaskHistory | undefined> {
  const { log } = cluster;
  const { name } = client.plan;
  for (const until = performance.now() + SETTLE_MS_MAX; ; await sleep(POLL_MS)) {
    const history = await historyOf(log.facts, taskId);
    if (history === undefined || !isTerminal(history.aggregate.state)) return history;
    const { generation } = history.aggregate;
    const delivered = Math.max(
      0,
      ...received()
        .filter(({ url }) => url === client.webhookUrl)
        .map(one => one.generation),
    );
    const missesEvents = client.isWebhookAcknowledged && delivered < generation;
    const indexed = (await log.tasks.get(taskId))?.value.generation;
    if (!missesEvents && indexed === generation) return history;
    if (performance.now() < until) continue;
    if (missesEvents) report('an acknowledged webhook gets every event', `${name}: events up to ${delivered} of ${generation}`);
    if (indexed !== generation) report('the index shows the newest state', `${name}: ${indexed}, not ${generation}`);
    return history;
  }
}

/** Checks that a failure names its reason, and that the script or the faults explain it. */
function verifyFailures(
  { plan }: CampaignClient,
  { facts }: TaskHistory,
  { explains }: FaultClass,
  { failures }: Verdict,
  report: Report,
): void {
  const wantsFailure = plan.turns.some(({ scripts }) => Object.values(scripts).some(({ end }) => end.startsWith('fails')));
  const isAnswered = plan.turns.length > 1 && plan.turns.some(({ scripts }) => scripts.reader?.remote !== 'keeps its text');
  for (const fact of facts) {
    if (fact.kind !== 'call.ended' && !(isVisible(fact) && fact.kind === 'status.changed')) continue;
    const { state, reason } =
      fact.kind === 'call.ended'
        ? fact
        : { state: fact.event.statusUpdate.status.state, reason: fact.event.statusUpdate.metadata?.reason };
    if (state !== 'TASK_STATE_FAILED') continue;
    if (typeof reason !== 'string') {
      report('a failure names its reason', `${plan.name}: ${JSON.stringify(fact)}`);
      continue;
    }
    if (wantsFailure && BY_SCRIPT.test(reason)) continue;
    failures[reason] = (failures[reason] ?? 0) + 1;
    if (isAnswered && explains.includes(EXHAUSTED) && UNPROVED.test(reason)) continue;
    if (!explains.some(pattern => pattern.test(reason))) report('a failure has a cause in the run', `${plan.name}: ${reason}`);
  }
}

/** Checks that every input of the task was stored, merged or rejected with a reason. */
async function verifyAudit(
  client: CampaignClient,
  { cluster, faultClass }: ClassEvidence,
  verdict: Verdict,
  report: Report,
): Promise<void> {
  const audit = (await reportTask(cluster.log, client.taskId!))?.audit;
  verdict.audited += 1;
  if (audit === undefined) return report('the audit of a task agrees', `${client.plan.name}: the audit found no task`);
  if (audit.incomplete) {
    verdict.auditsIncomplete += 1;
    if (faultClass.removesInputs !== true) report('the audit of a task agrees', `${client.plan.name}: inputs are missing`);
    return;
  }
  if (!isBalanced(audit))
    report('the audit of a task agrees', `${client.plan.name}: ${JSON.stringify([audit.unaccounted, audit.differing])}`);
  const task = await readStoredTask(cluster.log, client.taskId!);
  const replayed = task && verifyByReplay(task);
  if (replayed?.verdict !== 'same')
    report('the facts of a task follow from its inputs', `${client.plan.name}: ${JSON.stringify(replayed)}`);
}
