import { A2A_ERRORS, A2AError, type Dialect, isTerminal, type Message, type Operation, type Task } from '@hopline/a2a';
import { runOperation } from '@hopline/a2a-server';
import { FORK_KEY, type ForkPoint } from '@hopline/events';
import type { AgentScript } from '../support/agents/scripted-agent.ts';
import type { Operation as Recorded, Request } from '../support/history/history.ts';
import { refusalOf, StreamRecord } from '../support/history/stream-record.ts';
import type { Violation } from '../support/task-promises.ts';
import { taskIdOf, ViewerLog } from '../support/viewer-log.ts';
import { CALLER_HEADER, type Intrusion, ownerOf, storedIdOf } from './callers.ts';
import { ClientDialect, type DialectPlan } from './client-dialect.ts';
import type { Cluster, Incarnation, ProfileUsed } from './cluster.ts';
import { Connection } from './connection.ts';
import { copyTask } from './copy-task.ts';
import type { Random } from './random.ts';
import type { Situations } from './situations.ts';
import type { Trace } from './trace.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Plan of one client. */
export type TaskPlan = {
  name: string;
  startAt: number;
  profile: ProfileUsed;
  /**
   * The first message, then an answer to each question. `answersAfterMs`: the next message answers the turn's request for credentials,
   * which it does this much later. Absent: the client answers questions only.
   */
  turns: { agents: string[]; scripts: Record<string, AgentScript>; answersAfterMs?: number }[];
  webhook: 'with the message' | 'later' | undefined;
  /** When it cancels, counted from the first acknowledgement. */
  cancelAfterMs: number | undefined;
  /** True if it cancels instead of answering the first question. */
  cancelsAtQuestion?: boolean;
  /** A context that other tasks may share. Absent: one of its own. */
  contextId?: string;
  /** Reads of the task and lists of its context or of all tasks, counted from the first acknowledgement. */
  looks?: { afterMs: number; kind: 'read' | 'list' | 'list all' }[];
  /** Absent: A2A 1.0. */
  dialect?: DialectPlan;
  /** Whose credentials the client has. Absent: the servers run without authentication. */
  caller?: string;
  /** Requests about a task of another caller, counted from the first acknowledgement. */
  intrusions?: { afterMs: number; kind: Intrusion }[];
  /** The id of its task, if its dialect has it choose one. Two callers may choose the same. Absent: the name. */
  chosenId?: string;
  /** Its first message has no id of its own, so the task's id is used. */
  hasNoMessageId?: true;
  /** The task is exported after its end, and the file imported as another task. */
  isCopied?: true;
  /** A task that continues this one from a point of it, and after how many frames it begins. */
  fork?: { afterFrames: number; plan: TaskPlan };
  /**
   * The first viewer reads the stream of the message, the others subscribe. Each one disconnects after each of these numbers of frames, and
   * resumes.
   */
  viewers: { afterMs: number; leavesAfter: number[]; pauseMs: number }[];
  /**
   * A fault that lasts until this time does not affect the task, so its client must see the end before then. `avoids`: an ingress process
   * to which it sends no requests.
   */
  outside?: { endsBy: number; avoids?: string };
};

/** Without authentication all clients are one caller. */
const EVERYONE = 'everyone';
/** A response that takes longer is abandoned by the client. */
const RESPONSE_MS_MAX = 15_000;
const RETRY_MS = 300;
/** A client that a quota has refused waits longer. */
const QUOTA_RETRY_MS = 1_000;
const POLL_MS = 50;
/** Codes that show nothing about the task of a request. */
const NEUTRAL_CODES = new Set<string>(['TASK_NOT_FOUND', 'QUOTA_EXCEEDED', 'UNAVAILABLE']);
/** Small, so that lists have several pages. */
const PAGE_SIZE = 3;

/** A request without a stream, and how it ended. `code`: `ok`, an error code, or the end of the connection. */
type Exchange = {
  code: string;
  result: unknown;
  times: Request;
};

export type ClientDeps = {
  clock: VirtualClock;
  random: Random;
  trace: Trace;
  cluster: Cluster;
  situations: Situations;
  /** All clients of the run. A fork of a task adds its own. */
  clients: Client[];
};

/** The point of another client's task that a task continues. */
type Origin = { client: Client; point: ForkPoint };

/** A client with one task. It retries requests without an acknowledgement, resumes broken streams, and answers questions. */
export class Client {
  readonly plan: TaskPlan;
  readonly #deps: ClientDeps;
  readonly #dialect: ClientDialect;
  /** Undefined unless its task is a fork. */
  readonly origin: Origin | undefined;
  readonly viewers: ViewerLog[] = [];
  /** Ids of the messages that a server acknowledged. */
  readonly acknowledged: string[] = [];
  taskId: string | undefined;
  isWebhookAcknowledged = false;
  cancelAcknowledgedAt: number | undefined;
  isDone = false;
  /** When it was done, in milliseconds of the run. */
  doneAt: number | undefined;
  /** Its task after an export and an import. */
  copyId: string | undefined;
  /** Answers that break a promise by themselves. */
  readonly findings: Violation[] = [];
  /** Its requests and their responses. */
  readonly history: Recorded<Task>[] = [];
  /** Slot of the ingress process that each viewer has asked last. */
  readonly #ingressOf = new Map<ViewerLog, string>();
  /** What the client is doing, for reports. */
  activity = 'waits to start';

  constructor(plan: TaskPlan, deps: ClientDeps, origin?: Origin) {
    this.plan = plan;
    this.#deps = deps;
    this.#dialect = new ClientDialect(plan.dialect ?? { name: '1.0', isUnversioned: false, isBlocking: false });
    this.origin = origin;
  }

  get webhookUrl(): string {
    return `https://hooks.example.org/${this.plan.name}`;
  }

  async run(): Promise<void> {
    const { plan, viewers } = this;
    await this.#deps.clock.sleep(plan.startAt);
    const [first, ...others] = plan.viewers.map(
      (_, index) => new ViewerLog(`${plan.name}/viewer-${index + 1}`, this.#dialect.name),
    );
    viewers.push(first!, ...others);
    const begun = Promise.withResolvers<void>();
    const streamed = this.#streamFirst(first!, begun.resolve);
    await begun.promise;
    const subscribed = others.map(async (viewer, index) => {
      const { afterMs, leavesAfter, pauseMs } = plan.viewers[index + 1]!;
      await this.#deps.clock.sleep(afterMs);
      await this.#watch(viewer, leavesAfter, pauseMs);
    });
    const looks = (plan.looks ?? []).map(look => this.#look(look));
    const intrusions = (plan.intrusions ?? []).map((intrusion, index) => this.#intrude(intrusion, index));
    const own = [this.#setWebhook(), this.#cancel(), this.#answer(first!), this.#forkTask(first!)];
    await Promise.all([streamed, ...subscribed, ...looks, ...intrusions, ...own]);
    if (plan.isCopied) await this.#copy();
    this.isDone = true;
    this.doneAt = this.#deps.clock.nowMs;
  }

  /** Sends the first message until a server streams its first event, then reads to the end of the task. */
  async #streamFirst(viewer: ViewerLog, onBegun: () => void): Promise<void> {
    const { plan } = this;
    const { leavesAfter, pauseMs } = plan.viewers[0]!;
    const webhookUrl = plan.webhook === 'with the message' ? this.webhookUrl : undefined;
    const metadata = this.origin && { [FORK_KEY]: this.origin.point };
    const { chosenId = plan.name, hasNoMessageId } = plan;
    const optional = { webhookUrl, metadata, hasNoMessageId };
    const sent = { message: this.#message(0), chosenTaskId: chosenId, isStreaming: true, ...optional };
    viewer.onFrame = frame => {
      if (this.taskId !== undefined || frame.kind === 'gap') return;
      this.taskId = taskIdOf(frame);
      this.acknowledged.push(this.#message(0).messageId);
      if (plan.webhook === 'with the message') this.isWebhookAcknowledged = true;
      onBegun();
    };
    while (this.taskId === undefined) {
      this.activity = 'sends the first message';
      const end = await this.#stream('stream', this.#dialect.send(sent), viewer, leavesAfter[0]);
      if (this.origin !== undefined && FORK_REFUSALS.has(end))
        this.findings.push({ rule: 'a task can be forked at each cursor that its client has', detail: `${plan.name}: ${end}` });
      // A repeated message without an id is a new one once its task has ended. The client chose the id of that task.
      if (hasNoMessageId && end === 'UNSUPPORTED_OPERATION') {
        this.taskId = storedIdOf(chosenId, plan.caller);
        this.acknowledged.push(this.#message(0).messageId);
        onBegun();
      } else await this.#deps.clock.sleep(retryMsOf(end));
    }
    if (this.origin !== undefined) this.#deps.situations.add('a task is forked');
    await this.#watch(viewer, leavesAfter.slice(1), pauseMs);
  }

  async #watch(viewer: ViewerLog, leavesAfter: readonly number[], pauseMs: number): Promise<void> {
    for (let connections = 0; !viewer.isDone; connections++) {
      this.activity = `${viewer.name} reads`;
      const params = { id: this.#dialect.idOf(this.taskId!) };
      const end = await this.#stream('subscribe', params, viewer, leavesAfter[connections]);
      if (end === 'TASK_NOT_FOUND' || end === 'UNSUPPORTED_OPERATION') {
        // Without a cursor a task that has ended cannot be read.
        if (viewer.frames.length === 0) viewer.isDone = true;
      }
      await this.#deps.clock.sleep(end === 'QUOTA_EXCEEDED' ? Math.max(pauseMs, QUOTA_RETRY_MS) : pauseMs);
    }
  }

  async #answer(viewer: ViewerLog): Promise<void> {
    for (let turn = 1; turn < this.plan.turns.length; turn++) {
      const { answersAfterMs } = this.plan.turns[turn - 1]!;
      const awaited = answersAfterMs === undefined ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_AUTH_REQUIRED';
      while (viewer.state !== awaited) {
        if (viewer.isDone) return;
        await this.#deps.clock.sleep(50);
      }
      const asked = viewer.stateGeneration;
      if (this.plan.cancelsAtQuestion) return await this.#cancelNow();
      if (answersAfterMs !== undefined) await this.#deps.clock.sleep(answersAfterMs);
      const message = this.#message(turn);
      const { messageId } = message;
      const { taskId } = this;
      const sent = await this.#until(
        'send',
        this.#dialect.send({ message, chosenTaskId: '', isStreaming: false }),
        ({ code, result, times }) => {
          const shown = code === 'ok' ? { task: (result as { task: Task }).task } : refusalOf(code);
          this.history.push({ ...times, kind: 'send', messageId, contextId: this.#contextId, taskId, result: shown });
        },
      );
      if (sent === 'refused') {
        if (answersAfterMs !== undefined) this.#deps.situations.add('a client answers a request for credentials too late');
        return;
      }
      this.acknowledged.push(message.messageId);
      // A send that waits for the end of its turn is answered when the next question may already be there.
      while (viewer.state === awaited && viewer.stateGeneration === asked) await this.#deps.clock.sleep(50);
    }
  }

  async #setWebhook(): Promise<void> {
    if (this.plan.webhook !== 'later') return;
    const params = this.#dialect.createPush(this.taskId!, this.webhookUrl);
    this.isWebhookAcknowledged = (await this.#until('createPush', params)) === 'acknowledged';
  }

  async #cancel(): Promise<void> {
    const { cancelAfterMs } = this.plan;
    if (cancelAfterMs === undefined) return;
    await this.#deps.clock.sleep(cancelAfterMs);
    await this.#cancelNow();
  }

  async #cancelNow(): Promise<void> {
    const taskId = this.taskId!;
    const { clock, situations } = this.#deps;
    situations.canceling.add(taskId);
    const canceled = await this.#until('cancel', { id: this.#dialect.idOf(taskId) }, ({ code, result, times }) => {
      const shown = code === 'ok' ? { task: result as Task } : refusalOf(code);
      this.history.push({ ...times, kind: 'cancel', taskId, result: shown });
    });
    situations.canceling.delete(taskId);
    if (canceled === 'acknowledged') this.cancelAcknowledgedAt = clock.nowMs;
  }

  /** Reads the task or lists tasks. A request without a response shows nothing, and is not repeated. */
  async #look({ afterMs, kind }: NonNullable<TaskPlan['looks']>[number]): Promise<void> {
    await this.#deps.clock.sleep(afterMs);
    const taskId = this.taskId!;
    if (kind !== 'read' && this.#dialect.hasLists) return this.#list(kind === 'list' ? this.#contextId : undefined);
    const { code, result, times } = await this.#call('get', { id: this.#dialect.idOf(taskId) });
    this.#deps.trace.add(this.plan.name, 'get', code);
    if (code === 'ok') this.history.push({ ...times, kind: 'read', taskId, result: { task: result as Task } });
    else if (code === 'TASK_NOT_FOUND') this.history.push({ ...times, kind: 'read', taskId, result: 'not found' });
  }

  async #list(contextId: string | undefined): Promise<void> {
    const { situations, trace } = this.#deps;
    const tasks: { task: Task; begunAt: number; endedAt: number }[] = [];
    let [pages, pageToken] = [0, ''];
    let first: Request | undefined;
    do {
      const page = { pageSize: PAGE_SIZE, ...(contextId && { contextId }), ...(pageToken && { pageToken }) };
      const { code, result, times } = await this.#call('list', page);
      trace.add(this.plan.name, 'list', code);
      if (code !== 'ok') return;
      const { begunAt, endedAt } = times;
      first ??= times;
      pages += 1;
      const shown = result as { tasks: Task[]; nextPageToken: string };
      tasks.push(...shown.tasks.map(task => ({ task, begunAt, endedAt })));
      pageToken = shown.nextPageToken;
    } while (pageToken !== '');
    if (pages > 1) situations.add('a list has several pages');
    if (contextId !== undefined && tasks.length > 1) situations.add('a list shows two tasks of one context');
    this.history.push({ ...first!, endedAt: this.#deps.clock.nowMs, kind: 'list', contextId, pages, tasks });
  }

  /** Exports the ended task, imports the file as a task of the same caller, as an operator would, and reads it. */
  async #copy(): Promise<void> {
    const { clock, cluster, situations } = this.#deps;
    const { caller } = this.plan;
    this.activity = 'copies its task';
    while (this.copyId === undefined) {
      const copied = await copyTask(cluster.log, this.taskId!, caller === undefined ? undefined : ownerOf(caller));
      if (copied === 'refused') return;
      this.copyId = copied?.taskId;
      if (this.copyId === undefined) await clock.sleep(RETRY_MS);
    }
    situations.add('an exported task is imported');
    const id = this.copyId;
    await this.#until(
      'get',
      { id: this.#dialect.idOf(id) },
      ({ code, result, times }) => {
        if (code === 'ok') this.history.push({ ...times, kind: 'read', taskId: id, result: { task: result as Task } });
        else if (code === 'TASK_NOT_FOUND')
          this.findings.push({ rule: 'an imported task is there at once', detail: `${this.plan.name}: ${id}` });
      },
      id,
    );
  }

  /** Sends one request about a task of another caller. The existence of that task must stay hidden. */
  async #intrude({ afterMs, kind }: NonNullable<TaskPlan['intrusions']>[number], index: number): Promise<void> {
    const { clock, clients, situations, trace } = this.#deps;
    const { plan } = this;
    await clock.sleep(afterMs);
    const others = clients.filter(({ plan: other, taskId }) => taskId !== undefined && other.caller !== plan.caller);
    const victim = others[index % others.length];
    if (victim === undefined) return;
    const taskId = victim.taskId!;
    const cursor = victim.viewers[0]?.cursor;
    const message: Message = {
      messageId: `${plan.name}-intrusion-${index + 1}`,
      role: 'ROLE_USER',
      parts: [{ text: 'mine' }],
      ...(kind === 'send' && { taskId }),
    };
    const fork = cursor === undefined ? {} : { metadata: { [FORK_KEY]: { taskId, cursor } } };
    const isSend = kind === 'send' || kind === 'fork';
    // An unknown id begins a task of the caller in the form of April 2025, and so does a webhook.
    if ((kind === 'fork' && cursor === undefined) || (this.#dialect.name === 'legacy' && (isSend || kind === 'createPush')))
      return;
    const params = isSend
      ? this.#dialect.send({ message, chosenTaskId: taskId, isStreaming: false, ...(kind === 'fork' && fork) })
      : kind === 'createPush'
        ? this.#dialect.createPush(taskId, this.webhookUrl)
        : { id: taskId };
    const operation = isSend ? 'send' : kind === 'resume' ? 'subscribe' : kind;
    const { code } = await this.#call(operation, params, kind === 'resume' ? { cursor } : {});
    trace.add(plan.name, 'intrudes', kind, code);
    if (code === 'TASK_NOT_FOUND') situations.add('a request about the task of another caller is refused');
    if (code === 'ok' || (code in A2A_ERRORS && !NEUTRAL_CODES.has(code)))
      this.findings.push({
        rule: 'no caller learns of the task of another',
        detail: `${plan.name}: ${kind} of ${taskId}: ${code}`,
      });
  }

  /** Begins another task from the point that the viewer has reached after that many frames, or from the end. */
  async #forkTask(viewer: ViewerLog): Promise<void> {
    const { fork } = this.plan;
    if (fork === undefined) return;
    const { clock, clients, situations } = this.#deps;
    while (viewer.frames.length < fork.afterFrames && !viewer.isDone) await clock.sleep(POLL_MS);
    const { cursor } = viewer;
    if (cursor === undefined) return;
    const forked = new Client(fork.plan, this.#deps, { client: this, point: { taskId: this.taskId!, cursor } });
    const isOpen = viewer.state === undefined || !isTerminal(viewer.state);
    if (isOpen) situations.add('a task is forked before its end');
    clients.push(forked);
    await forked.run();
  }

  /** Repeats a request until it is acknowledged, or refused because the task is over. */
  async #until(
    operation: Operation,
    params: object,
    onExchange: (exchange: Exchange) => void = () => {},
    taskId = this.taskId,
  ): Promise<'acknowledged' | 'refused'> {
    for (;;) {
      this.activity = `sends ${operation}`;
      const exchange = await this.#call(operation, params, { taskId });
      onExchange(exchange);
      const { code } = exchange;
      this.#deps.trace.add(this.plan.name, operation, code);
      if (code === 'ok') return 'acknowledged';
      if (refusalOf(code) === 'ended') return 'refused';
      await this.#deps.clock.sleep(retryMsOf(code));
    }
  }

  get #contextId(): string {
    return this.plan.contextId ?? `${this.plan.name}-context`;
  }

  #message(turn: number): Message {
    const { name, turns } = this.plan;
    const { agents, scripts } = turns[turn]!;
    return {
      messageId: `${name}-m${turn + 1}`,
      role: 'ROLE_USER',
      contextId: this.#contextId,
      ...(this.taskId !== undefined && turn > 0 && { taskId: this.taskId }),
      parts: [{ text: `please ${agents.join(' and ')}` }],
      metadata: { scripts, ...(agents.length === 1 && { agent: agents[0] }) },
    };
  }

  #ingress(): Incarnation | undefined {
    const ingresses = this.#deps.cluster.ingresses().filter(({ slot }) => slot !== this.plan.outside?.avoids);
    return ingresses.length === 0 ? undefined : this.#deps.random.pick(ingresses);
  }

  /** Sends one streaming request. Resolves with how it ended: an error code, or the end of the connection. */
  async #stream(
    operation: Operation,
    params: object,
    viewer: ViewerLog,
    leavesAfter = Number.POSITIVE_INFINITY,
  ): Promise<string> {
    const { clock, trace, situations } = this.#deps;
    const ingress = this.#ingress();
    if (ingress === undefined) return 'no ingress';
    const before = this.#ingressOf.get(viewer);
    if (before !== undefined && before !== ingress.slot && viewer.cursor !== undefined)
      situations.add('a client resumes at another ingress process');
    this.#ingressOf.set(viewer, ingress.slot);
    let frames = 0;
    const begunAt = clock.nowMs;
    const record = new StreamRecord();
    const connection = new Connection(clock, ingress, this.#dialect, frame => {
      frames += 1;
      if (frame.kind === 'gap') situations.add('a viewer gets a gap');
      viewer.add(frame);
      record.add(frame, viewer, clock.nowMs);
      trace.add(viewer.name, frame.kind, 'cursor' in frame ? frame.cursor : `${frame.from}-${frame.to}`);
      if (frames >= leavesAfter) connection.leave();
    });
    const impatience = clock.after(RESPONSE_MS_MAX, () => frames === 0 && connection.leave());
    const cursor = operation === 'subscribe' ? viewer.cursor : undefined;
    const failed = new Promise<string>(resolve => {
      this.#request(ingress, operation, params, connection, cursor).then(
        () => {},
        error => resolve(codeOf(error)),
      );
    });
    const end = await Promise.race([failed, connection.over]);
    impatience.clear();
    trace.add(viewer.name, operation, end);
    if (end === 'failed') situations.add('a stream fails and its client comes back');
    if (cursor !== undefined && frames > 0) this.#noteResume();
    const what =
      operation === 'subscribe'
        ? ({ kind: 'subscribe', taskId: this.taskId!, cursor } as const)
        : ({ kind: 'send', messageId: this.#message(0).messageId, contextId: this.#contextId } as const);
    this.history.push(...record.operations(this.#timesOf(ingress, begunAt, clock.nowMs), what, end));
    return end;
  }

  #noteResume(): void {
    const { situations } = this.#deps;
    if (this.#dialect.name === '0.3') situations.add('a client of A2A 0.3 resumes');
    if (this.#dialect.name === 'legacy') situations.add('a client of April 2025 resumes');
  }

  /** `taskId`: the task of the answer. */
  async #call(
    operation: Operation,
    params: object,
    { cursor, taskId = this.taskId }: { cursor?: string | undefined; taskId?: string | undefined } = {},
  ): Promise<Exchange> {
    const { clock } = this.#deps;
    const ingress = this.#ingress();
    const begunAt = clock.nowMs;
    if (ingress === undefined) return { code: 'no ingress', result: undefined, times: this.#timesOf(ingress, begunAt) };
    const connection = new Connection(clock, ingress, this.#dialect, () => {});
    const impatience = clock.after(RESPONSE_MS_MAX, () => connection.leave());
    const answered = this.#request(ingress, operation, params, connection, cursor).then(
      sent => ({ code: 'ok', result: this.#dialect.answer(operation, sent, taskId ?? '') }),
      error => ({ code: codeOf(error), result: undefined }),
    );
    const over = connection.over.then(code => ({ code, result: undefined }));
    const { code, result } = await Promise.race([answered, over]);
    impatience.clear();
    const isCertain = code === 'ok' || refusalOf(code) !== undefined;
    return { code, result, times: this.#timesOf(ingress, begunAt, isCertain ? clock.nowMs : undefined) };
  }

  /** If it has no end, a request may take effect at any time. */
  #timesOf(ingress: Incarnation | undefined, begunAt: number, endedAt = Number.POSITIVE_INFINITY) {
    const replica = ingress?.process.name ?? 'no ingress';
    return { client: this.plan.name, caller: this.plan.caller ?? EVERYONE, replica, begunAt, endedAt };
  }

  #request(ingress: Incarnation, operation: Operation, params: object, connection: Connection, cursor: string | undefined) {
    const { clock, situations } = this.#deps;
    const { caller } = this.plan;
    let shown: string | undefined;
    const request = {
      binding: 'jsonrpc' as const,
      ...this.#dialect.negotiated(operation),
      params,
      bytes: 0,
      headers: caller === undefined ? {} : { [CALLER_HEADER]: caller },
      cursor,
      closed: connection.signal,
      isClientGone: () => connection.signal.aborted,
      encode: (result: unknown) => {
        shown = JSON.stringify(result);
        return Buffer.alloc(caller === undefined ? 0 : shown.length);
      },
      openSink: (dialect: Dialect) => {
        if (dialect !== request.dialect) situations.add('a request without a version gets the dialect of its task');
        return connection.sinkOf(dialect);
      },
    };
    return new Promise<unknown>((resolve, reject) => {
      // A frozen process reads the request when it continues.
      clock.as(ingress.process, () =>
        clock.after(1, () => {
          if (connection.signal.aborted) return;
          const answered = runOperation(ingress.servers![this.plan.profile], operation, request);
          answered.then(() => resolve(shown === undefined ? undefined : JSON.parse(shown)), reject);
        }),
      );
    });
  }
}

/** Refusals of a fork that do not depend on the moment. */
const FORK_REFUSALS = new Set(['TASK_NOT_FOUND', 'INVALID_PARAMS', 'UNSUPPORTED_OPERATION']);

const retryMsOf = (code: string) => (code === 'QUOTA_EXCEEDED' ? QUOTA_RETRY_MS : RETRY_MS);

function codeOf(error: unknown): string {
  return error instanceof A2AError ? error.code : String(error);
}
