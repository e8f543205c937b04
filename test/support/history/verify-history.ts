import { isTerminal, type TaskState } from '@hopline/a2a';
import type { History, Operation, Shown } from './history.ts';

/** Called for each violation, with a sentence that is the same for all runs. */
export type HistoryReport = (rule: string, detail: string, taskId: string) => void;

/** The log may have lost records that it had acknowledged, between these times by the clock of the history. */
type Loss = { startedAt: number; endedAt: number };

/** Knowledge of the run besides the history. */
export type HistoryContext = {
  losses?: readonly Loss[];
  /** The last state of each task, when everything has come to rest. */
  finalStates: ReadonlyMap<string, TaskState>;
};

/** Something that a client had learned of a task by a moment. */
type Witness = {
  at: number;
  client: string;
  /** The task had reached at least this generation. */
  generation: number;
  /** Undefined if the response did not show it. */
  state: TaskState | undefined;
  /** True if the task had ended, whether or not the response showed how. */
  hasEnded: boolean;
  source: string;
};

/** A response with the task as it was at some moment between the request and the response. */
type Look = { shown: Shown; client: string; begunAt: number; endedAt: number; source: string };

/** A message that a server acknowledged, and a request that found no task. */
type Acknowledged = { messageId: string; at: number };
type Absence = { begunAt: number; endedAt: number; source: string };

/** Everything that the history has about one task. */
type OfTask = {
  witnesses: Witness[];
  looks: Look[];
  acknowledged: Acknowledged[];
  absences: Absence[];
  /** When a client first knew that the task exists. */
  knownAt: number;
  caller: string | undefined;
  contextId: string | undefined;
};

type Sent = Extract<Operation<Shown>, { kind: 'send' }>;

/**
 * Judges what the clients of a run saw, without knowledge of the system (docs/reliability.md, "Histories", names the promise behind each rule).
 *
 * A task is a register that only grows: each event adds one generation. A history of such a register is linearizable if no response shows less than
 * another response had shown before its request began, so no search over orders is needed. Pairs of operations between which the log may
 * have lost acknowledged records prove nothing and are skipped.
 */
export function verifyHistory(history: History, { losses = [], finalStates }: HistoryContext, report: HistoryReport): void {
  const evidence = new Evidence();
  for (const operation of history) evidence.add(operation);
  const { tasks } = evidence;
  const isLost = (from: number, to: number) => losses.some(({ startedAt, endedAt }) => startedAt <= to && endedAt >= from);
  for (const [taskId, task] of tasks) {
    verifyLooks(taskId, task, isLost, report);
    verifyEnds(taskId, task, isLost, report);
  }
  for (const operation of history) {
    if (operation.kind === 'stream') verifyStream(operation, isLost, report);
    if (operation.kind === 'list') verifyList(operation, tasks, isLost, report);
  }
  verifySends(history, tasks, isLost, report);
  verifyCancels(history, finalStates, isLost, report);
}

type IsLost = (from: number, to: number) => boolean;

/** Everything that the operations of a history show of each task. */
class Evidence {
  readonly tasks = new Map<string, OfTask>();

  add(operation: Operation<Shown>): void {
    switch (operation.kind) {
      case 'send':
        this.#addSend(operation);
        break;
      case 'read':
      case 'cancel':
        if (operation.result === 'not found') this.#miss(operation, operation.taskId);
        else if (operation.result === 'ended') this.#end(operation, operation.taskId);
        else if (operation.result !== undefined) this.#see(operation, operation.result.task);
        break;
      case 'list':
        for (const { task, begunAt, endedAt } of operation.tasks) this.#see({ ...operation, begunAt, endedAt }, task);
        break;
      case 'stream':
        this.#addStream(operation);
    }
  }

  #addSend(send: Extract<Operation<Shown>, { kind: 'send' }>): void {
    const { result, messageId, contextId, caller, endedAt, beginsWithEvent = false } = send;
    if (result === 'ended') this.#end(send, send.taskId!);
    if (result === 'not found') this.#miss(send, send.taskId!);
    if (typeof result !== 'object') return;
    if (beginsWithEvent) this.#witness(send, result.task);
    else this.#see(send, result.task);
    const task = this.#of(result.task.taskId);
    task.acknowledged.push({ messageId, at: endedAt });
    task.knownAt = Math.min(task.knownAt, endedAt);
    task.caller = caller;
    task.contextId = contextId;
  }

  #addStream(stream: Extract<Operation<Shown>, { kind: 'stream' }>): void {
    const { taskId, refusal, after, frames, client, begunAt } = stream;
    if (refusal === 'not found') this.#miss(stream, taskId);
    if (refusal === 'ended') this.#end(stream, taskId);
    const { witnesses, looks } = this.#of(taskId);
    const source = sourceOf(stream);
    for (const { at, generation, state } of frames)
      witnesses.push({ at, client, generation, state, hasEnded: state !== undefined && isTerminal(state), source });
    const [first] = frames;
    // Without a cursor the first frame is the current task.
    if (after !== undefined || first?.isSnapshot !== true || first.state === undefined) return;
    const { generation, state, at } = first;
    const shown = { taskId, state, generation: { from: generation, to: generation }, messageIds: undefined };
    looks.push({ shown, client, begunAt, endedAt: at, source });
  }

  /** The response shows the task. */
  #see(operation: Operation<Shown>, shown: Shown): void {
    const { client, begunAt, endedAt } = operation;
    this.#of(shown.taskId).looks.push({ shown, client, source: sourceOf(operation), begunAt, endedAt });
    this.#witness(operation, shown);
  }

  /** The task was as shown when the response came, or before. */
  #witness(operation: Operation<Shown>, { taskId, state, generation }: Shown): void {
    const { client, endedAt: at } = operation;
    const source = sourceOf(operation);
    this.#of(taskId).witnesses.push({ at, client, generation: generation.from, state, hasEnded: isTerminal(state), source });
  }

  /** The response shows that the task has ended, and no more. */
  #end(operation: Operation<Shown>, taskId: string): void {
    const { client, endedAt: at } = operation;
    const source = sourceOf(operation);
    this.#of(taskId).witnesses.push({ at, client, generation: 1, state: undefined, hasEnded: true, source });
  }

  #miss(operation: Operation<Shown>, taskId: string): void {
    const { begunAt, endedAt } = operation;
    this.#of(taskId).absences.push({ begunAt, endedAt, source: sourceOf(operation) });
  }

  #of(taskId: string): OfTask {
    let task = this.tasks.get(taskId);
    if (task === undefined) {
      const unknown = { knownAt: Number.POSITIVE_INFINITY, caller: undefined, contextId: undefined };
      task = { witnesses: [], looks: [], acknowledged: [], absences: [], ...unknown };
      this.tasks.set(taskId, task);
    }
    return task;
  }
}

const sourceOf = ({ kind, client, replica }: Operation<Shown>) => `${kind} of ${client} at ${replica}`;

/** No response shows less than another response had shown before its request. */
function verifyLooks(taskId: string, task: OfTask, isLost: IsLost, report: HistoryReport): void {
  for (const { shown, client, begunAt, endedAt, source } of task.looks) {
    const before = task.witnesses.filter(({ at }) => at < begunAt && !isLost(at, endedAt));
    const newer = before.filter(({ generation }) => generation > shown.generation.to);
    const ofClient = newer.find(witness => witness.client === client);
    const witness = ofClient ?? newer[0];
    if (witness !== undefined)
      report(
        ofClient !== undefined
          ? 'a generation never steps back for one client'
          : 'a response shows all that an earlier one has shown',
        `${source} shows generation ${shown.generation.to}, after the ${witness.source} had shown ${witness.generation}`,
        taskId,
      );
    const { messageIds } = shown;
    if (messageIds === undefined) continue;
    const missing = task.acknowledged.find(
      ({ messageId, at }) => at < begunAt && !messageIds.includes(messageId) && !isLost(at, endedAt),
    );
    if (missing !== undefined)
      report('a read after an acknowledged send finds its message', `${source} lacks ${missing.messageId}`, taskId);
  }
  for (const { begunAt, endedAt, source } of task.absences) {
    const at = Math.min(task.knownAt, ...task.witnesses.map(witness => witness.at));
    if (at < begunAt && !isLost(at, endedAt))
      report('a read after an acknowledged send finds the task', `${source} did not find it`, taskId);
  }
}

function verifyEnds(taskId: string, { witnesses, looks }: OfTask, isLost: IsLost, report: HistoryReport): void {
  const ends = witnesses.filter(({ hasEnded }) => hasEnded);
  const shown = ends.filter(({ state }) => state !== undefined);
  const [first] = shown;
  const other = shown.find(
    ({ state, at }) => state !== first!.state && !isLost(Math.min(at, first!.at), Math.max(at, first!.at)),
  );
  if (other !== undefined)
    report('a terminal state never changes', `${first!.source} shows ${first!.state}, ${other.source} ${other.state}`, taskId);
  for (const look of looks) {
    if (isTerminal(look.shown.state)) continue;
    const end = ends.find(({ at }) => at < look.begunAt && !isLost(at, look.endedAt));
    if (end !== undefined)
      report(
        'a terminal state never changes',
        `${look.source} shows ${look.shown.state}, after the ${end.source} had found it ended`,
        taskId,
      );
  }
}

/** A stream only moves forward, from the cursor that it was given. */
function verifyStream(
  { client, replica, taskId, after, frames, refusal, begunAt, endedAt }: Extract<Operation<Shown>, { kind: 'stream' }>,
  isLost: IsLost,
  report: HistoryReport,
): void {
  const source = `stream of ${client} at ${replica}`;
  if (refusal === 'cursor' && !isLost(Number.NEGATIVE_INFINITY, endedAt))
    report('every replica takes a cursor that a client has received', `${source} refused generation ${after}`, taskId);
  let [newest, at] = [after ?? 0, begunAt];
  for (const frame of frames) {
    const isBehind = frame.isSnapshot ? frame.generation < newest : frame.generation <= newest;
    if (isBehind && !isLost(at, frame.at))
      report('a generation never steps back for one client', `${source} has ${frame.generation} after ${newest}`, taskId);
    [newest, at] = [frame.generation, frame.at];
  }
}

/** A list contains every task that its caller knew of, and no task of another caller. */
function verifyList(
  list: Extract<Operation<Shown>, { kind: 'list' }>,
  tasks: ReadonlyMap<string, OfTask>,
  isLost: IsLost,
  report: HistoryReport,
): void {
  const { caller, client, replica, begunAt, endedAt, contextId, pages } = list;
  const shown = new Set(list.tasks.map(({ task }) => task.taskId));
  for (const [taskId, task] of tasks) {
    if (task.caller === undefined) continue;
    if (shown.has(taskId)) {
      if (task.caller !== caller)
        report(
          'a list shows the tasks of its caller only',
          `${client} of ${caller} at ${replica} sees a task of ${task.caller}`,
          taskId,
        );
      if (contextId !== undefined && task.contextId !== contextId)
        report('a list of a context shows no other', `${client} at ${replica} sees a task of ${task.contextId}`, taskId);
      continue;
    }
    const isOfList = task.caller === caller && (contextId === undefined || contextId === task.contextId);
    const isDue = pages === 1 || task.witnesses.some(({ hasEnded, at }) => hasEnded && at < begunAt);
    if (isOfList && isDue && task.knownAt < begunAt && !isLost(task.knownAt, endedAt))
      report('a list shows what was acknowledged to its caller', `${client} at ${replica} does not see it`, taskId);
  }
}

/** An ended task takes no message. A repetition of a message that may have been stored before the end is acknowledged. */
function verifySends(history: History, tasks: ReadonlyMap<string, OfTask>, isLost: IsLost, report: HistoryReport): void {
  const sends = history.filter((operation): operation is Operation<Shown> & Sent => operation.kind === 'send');
  const firstAttempts = new Map<string, number>();
  for (const { messageId, begunAt } of sends)
    firstAttempts.set(messageId, Math.min(begunAt, firstAttempts.get(messageId) ?? Number.POSITIVE_INFINITY));
  const tasksOf = new Map<string, string>();
  for (const { messageId, taskId, result, client, replica, endedAt } of sends) {
    if (typeof result !== 'object') continue;
    const shown = result.task.taskId;
    const before = tasksOf.get(messageId);
    if (before !== undefined && before !== shown && !isLost(Number.NEGATIVE_INFINITY, endedAt))
      report('a message begins one task', `${messageId} is in task ${before}, too`, shown);
    tasksOf.set(messageId, shown);
    if (taskId === undefined) continue;
    const begunAt = firstAttempts.get(messageId)!;
    const end = tasks.get(taskId)?.witnesses.find(({ hasEnded, at }) => hasEnded && at < begunAt && !isLost(at, endedAt));
    if (end !== undefined)
      report('an ended task takes no message', `${messageId} of ${client} at ${replica}, after the ${end.source}`, taskId);
  }
}

function verifyCancels(
  history: History,
  finalStates: ReadonlyMap<string, TaskState>,
  isLost: IsLost,
  report: HistoryReport,
): void {
  for (const operation of history) {
    if (operation.kind !== 'cancel' || operation.result === undefined || operation.result === 'not found') continue;
    const { taskId, client, replica, endedAt } = operation;
    const state = finalStates.get(taskId);
    if ((state === undefined || !isTerminal(state)) && !isLost(endedAt, Number.POSITIVE_INFINITY))
      report('an acknowledged cancel ends its task', `it is ${state}, canceled by ${client} at ${replica}`, taskId);
  }
}
