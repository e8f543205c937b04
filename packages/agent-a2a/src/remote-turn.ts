import { setTimeout as delay } from 'node:timers/promises';
import {
  fullJitterMs,
  isInProgress,
  isInterrupted,
  isTerminal,
  type JsonObject,
  type RemoteResponse,
  type StreamResponse,
  type Task,
  type TaskState,
} from '@hopline/a2a';
import { type AgentEvent, type RemoteRunCancels, TASK_ENDED, type Turn } from '@hopline/agent';
import type { RemoteAgent } from '@hopline/agent-card';
import { AGENT_UNREACHABLE, AgentFault, NO_TERMINAL_STATE, rpcFault, silenceFault, totalFault } from './agent-fault.ts';
import { BeginningRun } from './beginning-run.ts';
import { EventReader, type ReaderOptions } from './event-reader.ts';
import type { A2ALimits } from './limits.ts';
import type { OpenQuestion } from './open-question.ts';
import type { Webhooks } from './options.ts';
import { QuietPoll } from './quiet-poll.ts';
import { CALL_MS_MAX, type RemoteClient } from './remote-client.ts';
import { cancelRequest, type RemoteRun, taskIdOf } from './remote-run.ts';
import { ANSWER_STEP, RemoteSteps } from './remote-steps.ts';
import { WebhookCalls } from './webhook-calls.ts';
import { isWholeText } from './whole-text.ts';

/**
 * Attempts of one tasks/get while the agent is unreachable or refuses it with a `Retry-After`, and of one message that it refuses so.
 */
const GET_TRIES_MAX = 5;
const SEND_TRIES_MAX = 3;
/**
 * Bounds in milliseconds of the pauses between them, about 3 s in all. A `Retry-After` is added; with a longer one than RETRY_AFTER_MS_MAX
 * the turn fails.
 */
const RETRY_MS_MIN = 200;
const RETRY_MS_BASE = 300;
const RETRY_MS_MAX = 2_400;
const RETRY_AFTER_MS_MAX = 30_000;
/** First and longest pause between two tasks/get. */
const POLL_MS = 250;
const POLL_MS_MAX = 2_000;
/** Milliseconds by which timers may fire early. */
const CLOCK_MS = 5;
/** Interval at which the content of a task is read while it is followed after a broken stream. */
const SHOW_MS = 2_000;

/** Method not found, unsupported operation: the agent does not stream, even if its card claims it. */
const CANNOT_STREAM: readonly number[] = [-32601, -32004];
/**
 * Push notifications not supported, the same under an older code, and invalid params: the agent does not accept webhooks, or refuses this
 * one.
 */
const CANNOT_PUSH: readonly number[] = [-32003, -32004, -32602];

type RemoteTurnOptions = {
  client: RemoteClient;
  turn: Turn;
  /** Parameters of a send. With a webhook the send does not block. */
  params: (agent: RemoteAgent, webhook?: string) => JsonObject;
  /** The context id that we gave the agent. */
  context: string;
  reader: ReaderOptions;
  limits: A2ALimits;
  webhooks: Webhooks | undefined;
  cancels: RemoteRunCancels;
};

/** `Turn.resume`: the agent's interrupted task with its question, and its context if the agent chose the id itself. */
type Resume = { taskId?: string; contextId?: string; asked?: OpenQuestion };

export function resumeOf({ resume }: Turn): Resume {
  return (resume ?? {}) as Resume;
}

/**
 * The states of a turn. Every state may also end the turn, by a terminal or interrupted event, or by a fault.
 *
 * | state     | request                                   | next                                                                       |
 * |-----------|-------------------------------------------|----------------------------------------------------------------------------|
 * | stream    | message/stream                            | poll when the stream ends early; send when the agent turns out not to stream |
 * | send      | message/send, blocking or with a webhook  | poll when the task has not ended                                           |
 * | poll      | tasks/get, after a pause or a webhook call | poll while the task works; subscribe, once, where the agent streams        |
 * | subscribe | tasks/resubscribe, tasks/get while silent | poll: events may be missing, so the end is read from the task              |
 *
 * A turn whose message another run of it has sent begins with poll.
 *
 * An agent that rejects stream or send before its first event may have changed: its card is read again, and the message is sent once more.
 */
type State = 'stream' | 'send' | 'poll' | 'subscribe';

/** One turn with a remote agent. */
export class RemoteTurn {
  readonly #client: RemoteClient;
  readonly #turn: Turn;
  readonly #options: RemoteTurnOptions;
  readonly #reader: EventReader;
  readonly #endsAtMs: number;
  /** Aborts when the caller stops reading. */
  readonly #left = new AbortController();
  /** Aborts when the agent's steps end the turn. */
  readonly #broken = new AbortController();
  /** Aborts with the turn, when its steps end it, or when the caller stops reading. */
  readonly #signal: AbortSignal;
  /** Set while the caller waits for events. */
  #wake: (() => void) | undefined;
  /** Set while a state waits until the caller has taken the events. */
  #room: PromiseWithResolvers<void> | undefined;
  #webhookCalls: WebhookCalls | undefined;
  #isStreamRefused = false;
  #hasSubscribed = false;
  /** Another run of this turn has sent the message, and no snapshot has yet proved that the text is complete. */
  #isUnproved = false;
  /** The task that this attempt has reported to the log as its own. */
  #reported: string | undefined;
  /** The interrupted task to which the message has been sent. It may run although no event has shown that yet. */
  #answered: string | undefined;
  /** The turn has failed, and no other attempt follows. */
  #hasFailed = false;
  /** The last state was a poll, so the next poll pauses. */
  #isPolling = false;
  #pollMs = POLL_MS;
  /** The last polled task as JSON, and when it was first received or last streamed. */
  #lastTask = '';
  #changedAtMs = 0;

  constructor(options: RemoteTurnOptions) {
    this.#client = options.client;
    this.#turn = options.turn;
    this.#options = options;
    const steps = new RemoteSteps({
      steps: options.turn.steps,
      send: answer => this.#answerStep(answer),
      onFault: fault => this.#broken.abort(fault),
    });
    this.#reader = new EventReader({ ...options.reader, onMetadata: metadata => steps.read(metadata) });
    this.#signal = this.#orLeft(options.turn.signal);
    this.#endsAtMs = performance.now() + options.limits.totalMsMax;
  }

  /**
   * The events of the turn, in arrays of those that arrived together. The states write into the reader while this generator waits, so that
   * a token takes only one iterator step from the socket to the caller.
   */
  async *run(): AsyncGenerator<AgentEvent[]> {
    let end: { error?: unknown } | undefined;
    const ended = (how: { error?: unknown }) => {
      end = how;
      this.#wake?.();
    };
    const running = this.#runStates().then(
      () => ended({}),
      error => ended({ error }),
    );
    try {
      for (;;) {
        const events = this.#reader.take();
        if (events.length > 0) {
          yield this.#withContext(events);
          continue;
        }
        this.#room?.resolve();
        this.#room = undefined;
        if (end !== undefined) break;
        await new Promise<void>(resolve => {
          this.#wake = resolve;
        });
      }
      yield* this.#failure(end.error);
    } finally {
      this.#left.abort();
      this.#room?.resolve();
      await running;
      this.#webhookCalls?.close();
      await this.#cancel();
    }
  }

  /** Aborts with `signal`, when the agent's steps end the turn, or when the caller stops reading. */
  #orLeft(signal: AbortSignal): AbortSignal {
    return AbortSignal.any([signal, this.#left.signal, this.#broken.signal]);
  }

  async #answerStep(answer: JsonObject): Promise<RemoteResponse> {
    const params = { taskId: this.#reader.ids.taskId ?? '', ...answer };
    return await this.#client.call({ extension: ANSWER_STEP }, params, this.#context(CALL_MS_MAX));
  }

  /** The last events of a turn that ended with an error. */
  *#failure(thrown: unknown): Generator<AgentEvent[]> {
    if (thrown === undefined || this.#turn.signal.aborted) return;
    const error: unknown = this.#broken.signal.reason ?? thrown;
    if (!(error instanceof AgentFault)) throw error;
    this.#reader.end();
    yield this.#reader.take();
    const { waiting } = this.#reader;
    // Credentials may take longer than a turn: the next turn continues the agent's task.
    if (waiting !== undefined && performance.now() >= this.#endsAtMs - CLOCK_MS)
      yield [{ type: 'interrupted', state: 'TASK_STATE_AUTH_REQUIRED', ...waiting }];
    else {
      this.#hasFailed = !error.retryable;
      yield [{ type: 'failed', reason: error.message, retryable: error.retryable, cause: error.word }];
    }
  }

  /** Lets the caller take what was read. If the caller has not yet taken what was read earlier, returns a promise to wait for. */
  #deliver(): Promise<void> | undefined {
    if (this.#left.signal.aborted) return undefined;
    const wake = this.#wake;
    if (wake === undefined) {
      this.#room ??= Promise.withResolvers();
      return this.#room.promise;
    }
    this.#wake = undefined;
    wake();
    return undefined;
  }

  async #runStates(): Promise<void> {
    let agent = await this.#client.agent();
    let state: State = agent.streaming ? 'stream' : 'send';
    this.#isUnproved = await this.#isSent();
    if (this.#isUnproved) state = 'poll';
    await this.#cancelEarlier();
    let isCardFresh = false;
    let tries = 1;
    while (!this.#reader.ended) {
      try {
        await this.#runState(state, agent);
        state = this.#next(state, agent);
      } catch (error) {
        const isRefused = error instanceof AgentFault && !this.#reader.begun && (state === 'stream' || state === 'send');
        if (isRefused && error.retryAfterMs !== undefined && tries < SEND_TRIES_MAX) {
          await this.#pause(error, tries);
          tries += 1;
          continue;
        }
        const mayHaveChanged = isRefused && !error.retryable && !isCardFresh;
        const changed = mayHaveChanged && !this.#turn.signal.aborted ? await this.#client.changedFrom(agent) : undefined;
        if (changed === undefined) throw error;
        agent = changed;
        state = agent.streaming ? 'stream' : 'send';
        isCardFresh = true;
      }
    }
  }

  /**
   * Whether another run of this turn has already sent the message to the task that waited for it: an earlier attempt, or the same one, which a
   * killed nats-server delivers again. A second send would start two runs in one task, and their texts would mix.
   */
  async #isSent(): Promise<boolean> {
    const { taskId } = resumeOf(this.#turn);
    if (taskId === undefined) return false;
    const response = await this.#client.call('get', { id: taskId }, this.#context(CALL_MS_MAX));
    if (!('event' in response) || !('task' in response.event)) return false;
    const { task } = response.event;
    const isKnown = task.history?.some(({ messageId }) => messageId === this.#turn.message.messageId) ?? false;
    if (isInterrupted(task.status.state) && !isKnown) return false;
    this.#reader.remember(task.id, task.contextId);
    this.#reportRun();
    return true;
  }

  /**
   * Cancels the tasks that earlier attempts of this turn began, except one that this turn continues. Otherwise two models would run, and be
   * paid, at the same time. Continuing such a task would not yield its whole text, because an agent need not keep it. Rejects when the
   * agent cannot be reached.
   */
  async #cancelEarlier(): Promise<void> {
    const { client, cancels } = this.#options;
    const turn = this.#turn;
    const continued = resumeOf(turn).taskId;
    for (const taskId of (turn.remoteRuns ?? []).flatMap(run => taskIdOf(run) ?? [])) {
      if (taskId === continued) continue;
      await cancels.cancel(taskId, cancelRequest(client, taskId, turn.trace)).catch(error => {
        if (error instanceof AgentFault && error.message === AGENT_UNREACHABLE) throw error;
        // The agent has the request but does not answer. Waiting longer would not stop it sooner.
      });
    }
  }

  /** State that a later attempt needs to cancel the task. */
  #reportRun(): void {
    const { taskId } = this.#reader.ids;
    if (taskId === undefined || taskId === this.#reported) return;
    this.#reported = taskId;
    this.#options.cancels.begun(taskId);
    this.#turn.remoteRunBegan?.({ taskId } satisfies RemoteRun);
  }

  #runState(state: State, agent: RemoteAgent): Promise<void> {
    switch (state) {
      case 'stream':
        return this.#stream(agent);
      case 'send':
        return this.#send(agent);
      case 'poll':
        return this.#poll(agent);
      case 'subscribe':
        return this.#subscribe();
    }
  }

  /** The state after one that neither ended the turn nor failed. */
  #next(state: State, agent: RemoteAgent): State {
    this.#isPolling = state === 'poll';
    if (state === 'stream' && this.#isStreamRefused) return 'send';
    if (state === 'poll' && agent.streaming && !this.#hasSubscribed) return 'subscribe';
    return 'poll';
  }

  async #stream(agent: RemoteAgent): Promise<void> {
    let mayBeStale = resumeOf(this.#turn).taskId !== undefined;
    // The refusal came from the server that the previous card described; the new one may stream.
    this.#isStreamRefused = false;
    this.#rememberAnswered();
    using beginning = this.#beginRun();
    const context = { ...this.#context(), signal: this.#orLeft(beginning.signal), agent };
    let failure: { error: unknown } | undefined;
    await this.#client.stream('stream', this.#options.params(agent), context, responses => {
      try {
        for (const response of responses) {
          this.#isStreamRefused ||= isStreamRefusal(response) && this.#reader.ids.taskId === undefined;
          if (this.#isStreamRefused || this.#reader.ended) break;
          this.#read(response, mayBeStale);
          mayBeStale = false;
        }
      } catch (error) {
        failure = { error };
      }
      if (this.#reader.ids.taskId !== undefined) beginning.named();
      const taken = this.#deliver();
      return failure !== undefined || this.#isStreamRefused || this.#reader.ended ? 'stop' : taken;
    });
    if (failure !== undefined) throw failure.error;
  }

  async #send(agent: RemoteAgent): Promise<void> {
    const response = await this.#sendOnce(agent);
    this.#read(response, resumeOf(this.#turn).taskId !== undefined && this.#webhookCalls !== undefined);
    await this.#deliver();
  }

  /** Sends with a webhook if the agent pushes; otherwise waits for the answer. */
  async #sendOnce(agent: RemoteAgent): Promise<RemoteResponse> {
    const { params, webhooks } = this.#options;
    this.#rememberAnswered();
    // The agent may have refused an earlier send with a webhook.
    this.#webhookCalls?.close();
    const calls = agent.pushNotifications && webhooks ? new WebhookCalls(webhooks) : undefined;
    const url = calls?.url;
    if (calls !== undefined && url !== undefined) {
      this.#webhookCalls = calls;
      using beginning = this.#beginRun();
      const context = { ...this.#context(), signal: this.#orLeft(beginning.signal), agent };
      const response = await this.#client.call('send', params(agent, url), context);
      if (!('error' in response) || !CANNOT_PUSH.includes(response.error.code)) return response;
      this.#webhookCalls = undefined;
      calls.close();
    }
    // Stops with its turn: a blocking send names its task only at its end.
    return await this.#client.call('send', params(agent), { ...this.#context(), agent });
  }

  /** Called just before the message is sent. */
  #rememberAnswered(): void {
    const { taskId } = resumeOf(this.#turn);
    if (taskId === undefined || this.#turn.signal.aborted) return;
    this.#answered = taskId;
    this.#options.cancels.begun(taskId);
  }

  #beginRun(): BeginningRun {
    const beginning = new BeginningRun(this.#turn.signal);
    if (this.#answered !== undefined) beginning.named();
    return beginning;
  }

  /**
   * Reads the task once. Text that the agent sent while we were disconnected is complete only if the task contains it; otherwise a new
   * attempt replaces the text.
   */
  async #poll(agent: RemoteAgent): Promise<void> {
    await this.#untilNextPoll();
    const task = await this.#get();
    this.#assertChanging(task, agent);
    this.#show(task);
    await this.#deliver();
  }

  #show(task: Task): void {
    const { state } = task.status;
    this.#isUnproved &&= !isWholeText(task, { turn: this.#turn, options: this.#options.reader });
    const isWhole = !this.#isUnproved && this.#reader.snapshot(task);
    // A failure keeps the text that another run has shown.
    const hasFailed = isTerminal(state) && state !== 'TASK_STATE_COMPLETED';
    if (isSettled(state) && !isWhole && !(hasFailed && this.#isUnproved)) throw new AgentFault(NO_TERMINAL_STATE, true);
    // The message of a status in progress is a message of the turn, which `snapshot` has read.
    const { message: _read, ...progress } = task.status;
    this.#reader.status(isInProgress(state) ? progress : task.status, task.metadata);
  }

  /**
   * Follows the events from now on. Earlier ones may be missing, so none of them is shown: the text comes from the task itself, which is
   * read from time to time and at its end. Otherwise a text with a gap would remain if the turn failed.
   */
  async #subscribe(): Promise<void> {
    const { taskId } = this.#reader.ids;
    this.#hasSubscribed = true;
    let shownAtMs = performance.now();
    using poll = new QuietPoll(this.#options.limits.lostEndMsMax, signal => this.#hasEndedUnseen(signal), this.#signal);
    const { signal } = poll;
    const show = async () => {
      poll.pause();
      this.#show(await this.#get());
      shownAtMs = performance.now();
      await this.#deliver();
      poll.resume();
    };
    try {
      await this.#client.stream('subscribe', { id: taskId ?? '' }, { ...this.#context(), signal }, responses => {
        for (const response of responses) {
          if (this.#reader.ended || !('event' in response) || isSettling(response.event)) return 'stop';
          this.#changedAtMs = performance.now();
          this.#followState(response.event);
        }
        if (performance.now() - shownAtMs >= SHOW_MS) return show();
        poll.resume();
        return this.#deliver();
      });
    } catch (error) {
      if (!(error instanceof AgentFault)) throw error;
    }
  }

  /** Records whether the agent works or waits for credentials. */
  #followState(event: StreamResponse): void {
    if (!('statusUpdate' in event)) return;
    const { status, metadata } = event.statusUpdate;
    const { message: _message, ...state } = status;
    if (status.state === 'TASK_STATE_AUTH_REQUIRED') this.#reader.status(status, metadata);
    else if (isInProgress(status.state)) this.#reader.status(state, metadata);
  }

  /**
   * Whether the task has stopped working although no event has shown it: the task may have ended before the subscription began, and a2a-sdk
   * 0.3 for Python ends no subscription to a task whose `execute()` raised.
   */
  async #hasEndedUnseen(signal: AbortSignal): Promise<boolean> {
    const response = await this.#client.call(
      'get',
      { id: this.#reader.ids.taskId ?? '' },
      { ...this.#context(CALL_MS_MAX), signal },
    );
    if (!('event' in response) || !('task' in response.event)) return false;
    const { state } = response.event.task.status;
    return !isInProgress(state) && !(state === 'TASK_STATE_AUTH_REQUIRED' && this.#reader.waiting !== undefined);
  }

  /** `mayBeStale`: the first response of a resumed task may show it before our answer, still interrupted (seen with @a2a-js/sdk 1.3). */
  #read(response: RemoteResponse, mayBeStale: boolean): void {
    if ('error' in response) throw rpcFault(response.error);
    if ('unknown' in response) this.#options.reader.onSkipped('unknown event');
    else if (mayBeStale && 'task' in response.event && isInterrupted(response.event.task.status.state))
      this.#reader.remember(response.event.task.id, response.event.task.contextId);
    else this.#reader.read(response.event);
    this.#reportRun();
  }

  /** An agent that chooses context ids itself needs its own id again in the next turn. */
  #withContext(events: AgentEvent[]): AgentEvent[] {
    const { contextId } = this.#reader.ids;
    if (!this.#reader.ended || contextId === undefined || contextId === this.#options.context) return events;
    return events.map(event => (event.type === 'done' ? { ...event, resume: { contextId } satisfies Resume } : event));
  }

  /** Waits for a webhook call, or for the pause between two polls. The content of a call is ignored: anyone may have sent it, in any order. */
  async #untilNextPoll(): Promise<void> {
    const restMs = this.#pollMs;
    const signal = this.#signal;
    if (this.#webhookCalls !== undefined || this.#isPolling) this.#pollMs = Math.min(restMs * 2, POLL_MS_MAX);
    if (this.#webhookCalls !== undefined) {
      const msMax = Math.min(this.#options.limits.lostCallMsMax, this.#endsAtMs - performance.now());
      await this.#webhookCalls.next({ signal, restMs, msMax });
    } else if (this.#isPolling) await delay(restMs, undefined, { signal });
    if (performance.now() >= this.#endsAtMs - CLOCK_MS) throw totalFault();
  }

  /**
   * Within the silence limit, an agent that streams must change its task, and any agent must begin it: with a2a-sdk
   * 0.3 for Python an exception in `execute()` leaves the task `submitted`. Agents that do not stream may work in silence until
   * the total limit.
   */
  #assertChanging(task: Task, agent: RemoteAgent): void {
    // Ignores the timestamp of the status, which some agents set in each response.
    const json = JSON.stringify({ ...task, status: { ...task.status, timestamp: undefined } });
    const nowMs = performance.now();
    if (json !== this.#lastTask) {
      this.#lastTask = json;
      this.#changedAtMs = nowMs;
    }
    const { silenceMsMax } = this.#options.limits;
    const { state } = task.status;
    const worksInSilence = !agent.streaming && state !== 'TASK_STATE_SUBMITTED';
    const mayBeSilent = worksInSilence || !isInProgress(state);
    if (!mayBeSilent && nowMs - this.#changedAtMs >= silenceMsMax) throw silenceFault(silenceMsMax);
  }

  async #get(): Promise<Task> {
    const { taskId } = this.#reader.ids;
    if (taskId === undefined) throw new AgentFault(NO_TERMINAL_STATE, true);
    for (let tries = 1; ; tries += 1) {
      try {
        const response = await this.#client.call('get', { id: taskId }, this.#context(CALL_MS_MAX));
        if ('event' in response && 'task' in response.event) return response.event.task;
        throw new AgentFault(NO_TERMINAL_STATE, true);
      } catch (error) {
        if (!(error instanceof AgentFault)) throw error;
        const fault = new AgentFault(NO_TERMINAL_STATE, true, { cause: error, retryAfterMs: error.retryAfterMs });
        const isRetried = error.message === AGENT_UNREACHABLE || error.retryAfterMs !== undefined;
        if (!isRetried || tries >= GET_TRIES_MAX) throw fault;
        await this.#pause(fault, tries);
      }
    }
  }

  /** Waits before the next attempt of a request. Throws `fault` if the agent asks for a longer wait than the turn allows. */
  async #pause(fault: AgentFault, tries: number): Promise<void> {
    const askedMs = fault.retryAfterMs ?? 0;
    const waitMs = askedMs + RETRY_MS_MIN + fullJitterMs(tries, RETRY_MS_BASE, RETRY_MS_MAX, Math.random);
    if (askedMs > RETRY_AFTER_MS_MAX || performance.now() + waitMs >= this.#endsAtMs) throw fault;
    await delay(waitMs, undefined, { signal: this.#signal });
  }

  /**
   * Cancels the agent's task, which should not continue after its turn has ended. Waits only for the first request; it is then repeated
   * until the agent answers one.
   */
  async #cancel(): Promise<void> {
    const { client, cancels } = this.#options;
    const isOver = this.#turn.signal.reason === TASK_ENDED;
    const taskId = this.#reader.ids.taskId ?? (isOver ? this.#answered : undefined);
    if (taskId === undefined) return;
    if (this.#reader.ended) return cancels.ended(taskId);
    // These are not canceled: the next turn continues a task that waits for credentials, and the next attempt continues a task whose
    // question is being answered.
    const isContinued = this.#reader.waiting !== undefined || (resumeOf(this.#turn).taskId !== undefined && !this.#hasFailed);
    if (isContinued && !isOver) return;
    await cancels.begin(taskId, cancelRequest(client, taskId, this.#turn.trace));
  }

  #context(msMax = Number.POSITIVE_INFINITY) {
    const totalMsMax = Math.min(msMax, this.#endsAtMs - performance.now());
    const mayBeSilent = () => this.#reader.waiting !== undefined;
    return { signal: this.#signal, trace: this.#turn.trace, totalMsMax, mayBeSilent };
  }
}

function isStreamRefusal(response: RemoteResponse): boolean {
  return 'error' in response && CANNOT_STREAM.includes(response.error.code);
}

function isSettling(event: StreamResponse): boolean {
  if ('statusUpdate' in event) return isSettled(event.statusUpdate.status.state);
  return 'task' in event && isSettled(event.task.status.state);
}

/** Auth-required does not settle the turn, because the agent continues by itself once it has the credentials. */
function isSettled(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED';
}
