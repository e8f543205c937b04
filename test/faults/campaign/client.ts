import { setTimeout as sleep } from 'node:timers/promises';
import { A2A_ERRORS, type A2AErrorCode, DIALECTS, decodeSse, type Task } from '@hopline/a2a';
import { FORK_KEY, type ForkPoint, parseCursor } from '@hopline/events';
import { rpc } from '../../support/cluster/a2a-stream.ts';
import type { Operation, Request } from '../../support/history/history.ts';
import { refusalOf, StreamRecord } from '../../support/history/stream-record.ts';
import type { Frame, VerifiedTask } from '../../support/task-promises.ts';
import { taskIdOf, ViewerLog } from '../../support/viewer-log.ts';
import { monotonicMs } from './agents/run-file.ts';
import type { Caller } from './campaign-cluster.ts';
import type { TaskPlan } from './workload.ts';

/** A stream without a byte for this long is abandoned; the server sends a comment every second. */
const SILENCE_MS_MAX = 4_000;
/** How long the client waits for a response before it abandons it, in milliseconds. A server without a log answers within 20 s. */
const RESPONSE_MS_MAX = 25_000;
const RETRY_MS = 100;
/** Tasks of a page of a list. */
const PAGE_SIZE = 50;
const POLL_MS = 20;

/** A viewer that knows when text reached it. */
export class TimedViewer extends ViewerLog {
  /** Times of frames with text, and of the end; `performance.now()`. */
  readonly progressAt: number[] = [];
  /** The client never disconnects by itself, so a pause of its text has another cause. */
  readonly isSteady: boolean;
  reconnects = 0;

  constructor(name: string, isSteady: boolean) {
    super(name);
    this.isSteady = isSteady;
  }

  get isInText(): boolean {
    return this.progressAt.length > 0 && this.state === 'TASK_STATE_WORKING';
  }

  override add(frame: Frame): void {
    super.add(frame);
    if (this.isDone || (frame.kind === 'event' && frame.json.startsWith('{"artifactUpdate"')))
      this.progressAt.push(performance.now());
  }
}

export type ClientDeps = {
  /** Base URLs of the ingress replicas. */
  ingresses: readonly string[];
  webhooksUrl: string;
  /** Aborts when the client is abandoned. */
  signal: AbortSignal;
  /** Takes each request and its response when it is over. */
  record: (operation: Operation<Task>) => void;
  caller: Caller;
};

/** A request without a stream, and how it ended. `code`: `ok`, an error code, or that no response came. */
type Exchange = { replica: string; begunAt: number; endedAt: number; code: string; result: unknown };

/** The members of an operation that depend on its kind. */
type Recorded = Recordable<Operation<Task>>;
type Recordable<T> = T extends unknown ? Omit<T, keyof Request> : never;

/** A client with one task over HTTP: it retries unacknowledged requests, and resumes streams at the other ingress. */
export class CampaignClient implements VerifiedTask {
  readonly plan: TaskPlan;
  readonly viewers: TimedViewer[] = [];
  readonly acknowledged: string[] = [];
  taskId: string | undefined;
  isWebhookAcknowledged = false;
  cancelAcknowledgedAt: number | undefined;
  isDone = false;
  /** The client of a task that continues this one from a point of it. */
  fork: CampaignClient | undefined;
  /** Current activity of the client, for reports. */
  activity = 'starts';
  readonly #deps: ClientDeps;
  /** The point of another task that this one continues. */
  readonly #origin: ForkPoint | undefined;
  #requests: number;

  constructor(plan: TaskPlan, deps: ClientDeps, firstIngress: number, origin?: ForkPoint) {
    this.plan = plan;
    this.#deps = deps;
    this.#requests = firstIngress;
    this.#origin = origin;
  }

  get webhookUrl(): string {
    return `${this.#deps.webhooksUrl}/${this.plan.name}`;
  }

  async run(): Promise<void> {
    const { plan, viewers } = this;
    viewers.push(
      ...plan.viewers.map(
        ({ leavesAfter }, index) => new TimedViewer(`${plan.name}/viewer-${index + 1}`, leavesAfter.length === 0),
      ),
    );
    const [first, ...others] = viewers;
    const begun = Promise.withResolvers<void>();
    const streamed = this.#streamFirst(first!, begun.resolve).finally(begun.resolve);
    await begun.promise;
    const subscribed = others.map(async (viewer, index) => {
      const { afterMs, leavesAfter } = plan.viewers[index + 1]!;
      await sleep(afterMs);
      await this.#watch(viewer, leavesAfter);
    });
    const looks = plan.looks.map(look => this.#look(look));
    await Promise.all([streamed, ...subscribed, ...looks, this.#cancel(), this.#answer(first!), this.#forkTask(first!)]);
    this.isDone = viewers.every(viewer => viewer.isDone);
  }

  get #isAbandoned(): boolean {
    return this.#deps.signal.aborted;
  }

  async #streamFirst(viewer: TimedViewer, onBegun: () => void): Promise<void> {
    const { leavesAfter } = this.plan.viewers[0]!;
    const push = { id: 'hook', url: this.webhookUrl };
    const configuration = this.plan.webhook === undefined ? {} : { configuration: { taskPushNotificationConfig: push } };
    viewer.onFrame = frame => {
      if (this.taskId !== undefined || frame.kind === 'gap') return;
      this.taskId = taskIdOf(frame);
      this.acknowledged.push(this.#messageId(0));
      this.isWebhookAcknowledged = this.plan.webhook !== undefined;
      onBegun();
    };
    while (this.taskId === undefined && !this.#isAbandoned) {
      this.activity = 'sends the first message';
      const end = await this.#stream(
        'SendStreamingMessage',
        { message: this.#message(0), ...configuration, ...(this.#origin && { metadata: { [FORK_KEY]: this.#origin } }) },
        viewer,
        leavesAfter[0],
      );
      if (this.taskId !== undefined) break;
      this.activity = `was refused the first message: ${end}`;
      await sleep(RETRY_MS);
    }
    await this.#watch(viewer, leavesAfter.slice(1));
  }

  async #watch(viewer: TimedViewer, leavesAfter: readonly number[]): Promise<void> {
    for (let connections = 0; !viewer.isDone && !this.#isAbandoned; connections += 1) {
      viewer.reconnects += 1;
      this.activity = `${viewer.name} reads`;
      const end = await this.#stream('SubscribeToTask', { id: this.taskId }, viewer, leavesAfter[connections]);
      // Without a cursor, an ended task has no stream to read.
      if (end === 'UNSUPPORTED_OPERATION' && viewer.frames.length === 0) viewer.isDone = true;
      if (viewer.isDone || end === 'left') continue;
      this.activity = `${viewer.name} lost its stream: ${end}`;
      await sleep(RETRY_MS);
    }
  }

  async #answer(viewer: TimedViewer): Promise<void> {
    let answered = 0;
    for (let turn = 1; turn < this.plan.turns.length; turn += 1) {
      // The next question may come before the acknowledgement of the last answer.
      while (viewer.state !== 'TASK_STATE_INPUT_REQUIRED' || viewer.stateGeneration <= answered) {
        if (viewer.isDone || this.#isAbandoned) return;
        await sleep(POLL_MS);
      }
      answered = viewer.stateGeneration;
      if (this.plan.cancelsAtQuestion) return this.#cancelNow();
      const message = this.#message(turn);
      const send = () => this.#exchange('SendMessage', { message, configuration: { returnImmediately: true } });
      const { messageId } = message;
      const isAcknowledged = await this.#until(send, ({ code, result, ...times }) => {
        const shown = code === 'ok' ? { task: (result as { task: Task }).task } : refusalOf(code);
        const { taskId } = this;
        this.#record(times, { kind: 'send', messageId, contextId: this.#contextId, taskId, result: shown });
      });
      if (!isAcknowledged) return;
      this.acknowledged.push(messageId);
    }
  }

  async #cancel(): Promise<void> {
    const { cancelAfterMs } = this.plan;
    if (cancelAfterMs === undefined) return;
    await sleep(cancelAfterMs);
    await this.#cancelNow();
  }

  async #cancelNow(): Promise<void> {
    const cancel = () => this.#exchange('CancelTask', { id: this.taskId });
    const isAcknowledged = await this.#until(cancel, ({ code, result, ...times }) => {
      const shown = code === 'ok' ? { task: result as Task } : refusalOf(code);
      this.#record(times, { kind: 'cancel', taskId: this.taskId!, result: shown });
    });
    if (isAcknowledged) this.cancelAcknowledgedAt = monotonicMs();
  }

  /** Begins another task from the point that the viewer has reached after that many frames, or from the end. */
  async #forkTask(viewer: TimedViewer): Promise<void> {
    const { fork } = this.plan;
    if (fork === undefined) return;
    while (viewer.frames.length < fork.afterFrames && !viewer.isDone) {
      if (this.#isAbandoned) return;
      await sleep(POLL_MS);
    }
    if (viewer.cursor === undefined) return;
    this.fork = new CampaignClient(fork.plan, this.#deps, this.#requests + 1, { taskId: this.taskId!, cursor: viewer.cursor });
    await this.fork.run();
  }

  /** Reads the task, or lists tasks. A request without a response shows nothing, and is not repeated. */
  async #look({ afterMs, kind }: TaskPlan['looks'][number]): Promise<void> {
    await sleep(afterMs);
    if (this.#isAbandoned) return;
    const taskId = this.taskId!;
    if (kind !== 'read') return this.#list(kind === 'list' ? this.#contextId : undefined);
    const { code, result, ...times } = await this.#exchange('GetTask', { id: taskId });
    if (code === 'ok') this.#record(times, { kind: 'read', taskId, result: { task: result as Task } });
    else if (code === 'TASK_NOT_FOUND') this.#record(times, { kind: 'read', taskId, result: 'not found' });
  }

  async #list(contextId: string | undefined): Promise<void> {
    const tasks: { task: Task; begunAt: number; endedAt: number }[] = [];
    let [pages, pageToken] = [0, ''];
    let first: Exchange | undefined;
    do {
      const page = { pageSize: PAGE_SIZE, ...(contextId && { contextId }), ...(pageToken && { pageToken }) };
      const exchange = await this.#exchange('ListTasks', page);
      if (exchange.code !== 'ok') return;
      const { begunAt, endedAt } = exchange;
      first ??= exchange;
      pages += 1;
      const shown = exchange.result as { tasks: Task[]; nextPageToken: string };
      tasks.push(...shown.tasks.map(task => ({ task, begunAt, endedAt })));
      pageToken = shown.nextPageToken;
    } while (pageToken !== '');
    const times = { replica: first.replica, begunAt: first.begunAt, endedAt: performance.now() };
    this.#record(times, { kind: 'list', contextId, pages, tasks });
  }

  /** Repeats a request until it is acknowledged. Resolves with false when it is refused because the task is over. */
  async #until(request: () => Promise<Exchange>, onExchange: (exchange: Exchange) => void): Promise<boolean> {
    while (!this.#isAbandoned) {
      const exchange = await request();
      onExchange(exchange);
      const { code } = exchange;
      if (code === 'ok') return true;
      if (refusalOf(code) === 'ended') return false;
      this.activity += `, which was refused: ${code}`;
      await sleep(RETRY_MS);
    }
    return false;
  }

  /** Sends one request. Without a response its outcome is unknown, and it may still take effect. */
  async #exchange(method: string, params: Record<string, unknown>): Promise<Exchange> {
    this.activity = `sends ${method}`;
    const signal = AbortSignal.any([this.#deps.signal, AbortSignal.timeout(RESPONSE_MS_MAX)]);
    const replica = this.#ingress();
    const begunAt = performance.now();
    const { headers } = this.#deps.caller;
    const answer = await rpc(replica, { dialect: '1.0', method, params, signal, headers }).then(answerOf, () => undefined);
    const { code, result } = answer ?? { code: 'no response', result: undefined };
    const isCertain = code === 'ok' || refusalOf(code) !== undefined;
    return { replica, begunAt, endedAt: isCertain ? performance.now() : Number.POSITIVE_INFINITY, code, result };
  }

  #record(times: Pick<Exchange, 'replica' | 'begunAt' | 'endedAt'>, what: Recorded): void {
    const { replica, begunAt, endedAt } = times;
    const { name: caller } = this.#deps.caller;
    this.#deps.record({ client: this.plan.name, caller, replica, begunAt, endedAt, ...what });
  }

  /** Each request goes to the next ingress in turn. */
  #ingress(): string {
    const { ingresses } = this.#deps;
    this.#requests += 1;
    return ingresses[this.#requests % ingresses.length]!;
  }

  get #contextId(): string {
    return `${this.plan.name}-context`;
  }

  #messageId(turn: number): string {
    return `${this.plan.name}-m${turn + 1}`;
  }

  #message(turn: number) {
    const { turns, ballastChars } = this.plan;
    const { agents, scripts } = turns[turn]!;
    const messageId = this.#messageId(turn);
    const script = JSON.stringify({ messageId, scripts });
    const parts = [
      { text: `please ${agents.join(' and ')} ${script}` },
      ...(turn === 0 && ballastChars > 0 ? [{ text: ' '.repeat(ballastChars) }] : []),
    ];
    return {
      messageId,
      role: 'ROLE_USER',
      contextId: this.#contextId,
      ...(this.taskId !== undefined && turn > 0 && { taskId: this.taskId }),
      parts,
      metadata: { scripts, ...(agents.length === 1 && { agent: agents[0] }) },
    };
  }

  /** Sends one streaming request. Resolves with the way in which it ended. */
  async #stream(
    method: 'SendStreamingMessage' | 'SubscribeToTask',
    params: Record<string, unknown>,
    viewer: TimedViewer,
    leavesAfter = Number.POSITIVE_INFINITY,
  ): Promise<string> {
    const isSend = method === 'SendStreamingMessage';
    const cursor = isSend ? undefined : viewer.cursor;
    const replica = this.#ingress();
    const begunAt = performance.now();
    const record = new StreamRecord();
    const onFrame = (frame: Frame) => {
      viewer.add(frame);
      record.add(frame, viewer, performance.now());
    };
    const request = { method, params, ...(cursor !== undefined && { lastEventId: cursor }) };
    const end = await this.#readStream(replica, request, viewer, leavesAfter, onFrame);
    const { record: keep, caller } = this.#deps;
    const times = { client: this.plan.name, caller: caller.name, replica, begunAt, endedAt: performance.now() };
    const what = isSend
      ? ({ kind: 'send', messageId: this.#messageId(0), contextId: this.#contextId } as const)
      : ({ kind: 'subscribe', taskId: this.taskId!, cursor } as const);
    for (const operation of record.operations(times, what, end)) keep(operation);
    return end;
  }

  async #readStream(
    replica: string,
    request: { method: string; params: Record<string, unknown>; lastEventId?: string },
    viewer: TimedViewer,
    leavesAfter: number,
    onFrame: (frame: Frame) => void,
  ): Promise<string> {
    const cut = new AbortController();
    const signal = AbortSignal.any([cut.signal, this.#deps.signal]);
    const silence = setTimeout(() => cut.abort(), request.method === 'SubscribeToTask' ? SILENCE_MS_MAX : RESPONSE_MS_MAX);
    const { headers } = this.#deps.caller;
    try {
      const response = await rpc(replica, { dialect: '1.0', ...request, signal, headers });
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return (await answerOf(response)).code;
      const bytes = eachResets(response.body!, () => {
        clearTimeout(silence);
        return setTimeout(() => cut.abort(), SILENCE_MS_MAX);
      });
      let frames = 0;
      for await (const { event, data, id } of decodeSse(bytes)) {
        const frame = frameOf(event, data, id, viewer);
        if (typeof frame === 'string') return frame;
        if (frame === undefined) continue;
        onFrame(frame);
        frames += 1;
        if (frames >= leavesAfter) return 'left';
      }
      return 'ended';
    } catch (error) {
      return error instanceof Error ? error.name : String(error);
    } finally {
      clearTimeout(silence);
      cut.abort();
    }
  }
}

/** Passes bytes on and restarts a timer after each piece. The timer is cleared at the end. */
async function* eachResets(bytes: AsyncIterable<Uint8Array>, start: () => NodeJS.Timeout): AsyncGenerator<Uint8Array> {
  let timer = start();
  try {
    for await (const piece of bytes) {
      clearTimeout(timer);
      timer = start();
      yield piece;
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the frame for the log of the viewer, the code of an error that ends the stream, or undefined for anything else. */
function frameOf(
  event: string | undefined,
  data: string,
  id: string | undefined,
  viewer: TimedViewer,
): Frame | string | undefined {
  if (event === 'gap') return { kind: 'gap', ...(JSON.parse(data) as { missing: { from: number; to: number } }).missing };
  if (event !== undefined && event !== 'message') return event;
  const { result, error } = JSON.parse(data) as { result?: unknown; error?: { code: number } };
  if (error !== undefined) return codeOf(error.code);
  const decoded = DIALECTS['1.0'].decodeEvent(result);
  if (!('event' in decoded)) throw new Error(`not an event: ${decoded.unknown}`);
  const cursor = id ?? '';
  const generation = parseCursor(cursor)?.generation;
  if (generation === undefined) throw new Error(`no cursor: ${id}`);
  const isFirstEvent = generation === 1 && viewer.frames.length === 0;
  if ('task' in decoded.event && !isFirstEvent) return { kind: 'snapshot', generation, cursor, task: decoded.event.task };
  return { kind: 'event', generation, cursor, json: JSON.stringify(decoded.event) };
}

async function answerOf(response: Response): Promise<{ code: string; result: unknown }> {
  const body = (await response.json().catch(() => undefined)) as { result?: unknown; error?: { code?: number } } | undefined;
  if (body?.error !== undefined) return { code: codeOf(body.error.code), result: undefined };
  return { code: response.ok ? 'ok' : `status ${response.status}`, result: body?.result };
}

function codeOf(rpcCode: number | undefined): string {
  const codes = Object.entries(A2A_ERRORS) as [A2AErrorCode, { rpc: number }][];
  return codes.find(([, { rpc: code }]) => code === rpcCode)?.[0] ?? `code ${rpcCode}`;
}
