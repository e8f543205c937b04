import { setTimeout as sleep } from 'node:timers/promises';
import { A2A_ERRORS, type A2AErrorCode, DIALECTS, decodeSse } from '@hopline/a2a';
import { parseCursor } from '@hopline/events';
import { rpc } from '../../support/cluster/a2a-stream.ts';
import type { Frame, VerifiedTask } from '../../support/task-promises.ts';
import { taskIdOf, ViewerLog } from '../../support/viewer-log.ts';
import { monotonicMs } from './agents/run-file.ts';
import type { TaskPlan } from './workload.ts';

/** A stream without a byte for this long is abandoned; the server sends a comment every second. */
const SILENCE_MS_MAX = 4_000;
/** How long the client waits for a response before it abandons it, in milliseconds. A server without a log answers within 20 s. */
const RESPONSE_MS_MAX = 25_000;
const RETRY_MS = 100;
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
};

/** A client with one task over HTTP: it retries unacknowledged requests, and resumes streams at the other ingress. */
export class CampaignClient implements VerifiedTask {
  readonly plan: TaskPlan;
  readonly viewers: TimedViewer[] = [];
  readonly acknowledged: string[] = [];
  taskId: string | undefined;
  isWebhookAcknowledged = false;
  cancelAcknowledgedAt: number | undefined;
  isDone = false;
  /** Current activity of the client, for reports. */
  activity = 'starts';
  readonly #deps: ClientDeps;
  #requests: number;

  constructor(plan: TaskPlan, deps: ClientDeps, firstIngress: number) {
    this.plan = plan;
    this.#deps = deps;
    this.#requests = firstIngress;
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
    await Promise.all([streamed, ...subscribed, this.#cancel(), this.#answer(first!)]);
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
        { message: this.#message(0), ...configuration },
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
      if (this.plan.cancelsAtQuestion) return await this.#cancelNow();
      if (!(await this.#until('SendMessage', { message: this.#message(turn), configuration: { returnImmediately: true } })))
        return;
      this.acknowledged.push(this.#messageId(turn));
    }
  }

  async #cancel(): Promise<void> {
    const { cancelAfterMs } = this.plan;
    if (cancelAfterMs === undefined) return;
    await sleep(cancelAfterMs);
    await this.#cancelNow();
  }

  async #cancelNow(): Promise<void> {
    if (await this.#until('CancelTask', { id: this.taskId })) this.cancelAcknowledgedAt = monotonicMs();
  }

  /** Repeats a request until it is acknowledged. Resolves with false when it is refused because the task is over. */
  async #until(method: string, params: Record<string, unknown>): Promise<boolean> {
    while (!this.#isAbandoned) {
      this.activity = `sends ${method}`;
      const signal = AbortSignal.any([this.#deps.signal, AbortSignal.timeout(RESPONSE_MS_MAX)]);
      const result = await rpc(this.#ingress(), { dialect: '1.0', method, params, signal }).then(
        codeOfResponse,
        () => 'no response',
      );
      if (result === 'ok') return true;
      if (result === 'UNSUPPORTED_OPERATION' || result === 'TASK_NOT_CANCELABLE') return false;
      this.activity = `was refused ${method}: ${result}`;
      await sleep(RETRY_MS);
    }
    return false;
  }

  /** Each request goes to the next ingress in turn. */
  #ingress(): string {
    const { ingresses } = this.#deps;
    this.#requests += 1;
    return ingresses[this.#requests % ingresses.length]!;
  }

  #messageId(turn: number): string {
    return `${this.plan.name}-m${turn + 1}`;
  }

  #message(turn: number) {
    const { name, turns, ballastChars } = this.plan;
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
      contextId: `${name}-context`,
      ...(this.taskId !== undefined && turn > 0 && { taskId: this.taskId }),
      parts,
      metadata: { scripts, ...(agents.length === 1 && { agent: agents[0] }) },
    };
  }

  /** Sends one streaming request. Resolves with the way in which it ended. */
  async #stream(
    method: string,
    params: Record<string, unknown>,
    viewer: TimedViewer,
    leavesAfter = Number.POSITIVE_INFINITY,
  ): Promise<string> {
    const cut = new AbortController();
    const signal = AbortSignal.any([cut.signal, this.#deps.signal]);
    const silence = setTimeout(() => cut.abort(), method === 'SubscribeToTask' ? SILENCE_MS_MAX : RESPONSE_MS_MAX);
    const lastEventId = method === 'SubscribeToTask' ? viewer.cursor : undefined;
    try {
      const response = await rpc(this.#ingress(), {
        dialect: '1.0',
        method,
        params,
        signal,
        ...(lastEventId !== undefined && { lastEventId }),
      });
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return await codeOfResponse(response);
      const bytes = eachResets(response.body!, () => {
        clearTimeout(silence);
        return setTimeout(() => cut.abort(), SILENCE_MS_MAX);
      });
      let frames = 0;
      for await (const { event, data, id } of decodeSse(bytes)) {
        const frame = frameOf(event, data, id, viewer);
        if (typeof frame === 'string') return frame;
        if (frame === undefined) continue;
        viewer.add(frame);
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

async function codeOfResponse(response: Response): Promise<string> {
  const body = (await response.json().catch(() => undefined)) as { error?: { code?: number } } | undefined;
  if (body?.error !== undefined) return codeOf(body.error.code);
  return response.ok ? 'ok' : `status ${response.status}`;
}

function codeOf(rpcCode: number | undefined): string {
  const codes = Object.entries(A2A_ERRORS) as [A2AErrorCode, { rpc: number }][];
  return codes.find(([, { rpc: code }]) => code === rpcCode)?.[0] ?? `code ${rpcCode}`;
}
