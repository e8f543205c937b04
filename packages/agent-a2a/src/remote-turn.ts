import { setTimeout as delay } from 'node:timers/promises';
import { isInterrupted, isTerminal, type JsonObject, type RemoteResponse, type Task, type TaskState } from '@hopline/a2a';
import { type AgentEvent, TASK_ENDED, type Turn } from '@hopline/agent';
import type { RemoteAgent } from '@hopline/agent-card';
import { EventReader, type ReaderOptions } from './event-reader.ts';
import type { A2ALimits } from './limits.ts';
import { AgentFault, NO_TERMINAL_STATE, UNREACHABLE, type Webhooks } from './options.ts';
import { CALL_MS_MAX, type ForeignClient } from './remote-client.ts';
import { WebhookCalls } from './webhook-calls.ts';

/** tasks/get after a broken stream: tries while the agent cannot be reached, and the pause between them, milliseconds; doubled each time. */
const GET_TRIES_MAX = 5;
const GET_RETRY_MS = 200;
/** Pause between tasks/get while the agent works and does not stream, milliseconds; grows to the second. */
const POLL_MS = 250;
const POLL_MS_MAX = 2_000;
/** Timers may be early by this, milliseconds. */
const CLOCK_MS = 5;
/** The agent gets this long to hear of a cancel, milliseconds. */
const CANCEL_MS_MAX = 2_000;

/** Method not found, unsupported operation: the agent cannot stream although nothing said so. */
const CANNOT_STREAM: readonly number[] = [-32601, -32004];
/** Push notifications are not supported, the same by an older name, invalid params: it takes no webhook, or not this one, although its card said so. */
const CANNOT_CALL: readonly number[] = [-32003, -32004, -32602];

export type ForeignTurnOptions = {
  client: ForeignClient;
  turn: Turn;
  /** With the address where the agent calls, it need not make us wait. */
  params: (agent: RemoteAgent, webhook?: string) => JsonObject;
  /** The context we gave the agent, of our own making. */
  context: string;
  reader: ReaderOptions;
  limits: A2ALimits;
  webhooks: Webhooks | undefined;
};

/** What a turn leaves for the agent's next one: the task that asked, and the context where the agent has named it itself. */
type Resume = { taskId?: string; contextId?: string };

export function resumeOf({ resume }: Turn): Resume {
  return (resume ?? {}) as Resume;
}

/** One turn with a foreign agent: streams if it can, waits if not, and finds out what became of a task whose stream broke. */
export class ForeignTurn {
  readonly #client: ForeignClient;
  readonly #turn: Turn;
  readonly #options: ForeignTurnOptions;
  readonly #reader: EventReader;
  readonly #endsAtMs: number;
  #resubscribed = false;
  #calls: WebhookCalls | undefined;

  constructor(options: ForeignTurnOptions) {
    this.#client = options.client;
    this.#turn = options.turn;
    this.#options = options;
    this.#reader = new EventReader(options.reader);
    this.#endsAtMs = performance.now() + options.limits.totalMsMax;
  }

  async *run(): AsyncGenerator<AgentEvent> {
    for await (const event of this.#events()) {
      const { contextId } = this.#reader.ids;
      // An agent that names its contexts itself knows the conversation by its own name only.
      const own = event.type === 'done' && contextId !== undefined && contextId !== this.#options.context;
      yield own ? { ...event, resume: { contextId } satisfies Resume } : event;
    }
  }

  async *#events(): AsyncGenerator<AgentEvent> {
    try {
      const agent = yield* this.#begin(await this.#client.agent());
      if (!this.#reader.ended) yield* this.#recover(agent);
    } catch (error) {
      if (this.#turn.signal.aborted) return;
      if (!(error instanceof AgentFault)) throw error;
      const { waiting } = this.#reader;
      // Nobody watches for ever, but who has to answer may take as long as it takes.
      if (waiting !== undefined && performance.now() >= this.#endsAtMs - CLOCK_MS)
        yield { type: 'interrupted', state: 'TASK_STATE_AUTH_REQUIRED', ...waiting };
      else yield { type: 'failed', reason: error.message, retryable: error.retryable };
    } finally {
      this.#calls?.close();
      await this.#cancel();
    }
  }

  /** A card is known for a while, and the agent may have become one of another dialect or address meanwhile: one that refuses is asked who it is, and spoken to as it is now, once. */
  async *#begin(agent: RemoteAgent): AsyncGenerator<AgentEvent, RemoteAgent> {
    try {
      yield* this.#ask(agent);
      return agent;
    } catch (error) {
      const refused = error instanceof AgentFault && !error.retryable && !this.#reader.begun;
      const now = refused && !this.#turn.signal.aborted ? await this.#client.changedFrom(agent) : undefined;
      if (now === undefined) throw error;
      yield* this.#ask(now);
      return now;
    }
  }

  async *#ask(agent: RemoteAgent): AsyncGenerator<AgentEvent> {
    const streamed = agent.streaming && (yield* this.#stream(agent));
    if (!streamed) yield* this.#answered(await this.#send(agent));
  }

  /** Waits for the answer, or leaves an address where the agent calls when there is something to look at. */
  async #send(agent: RemoteAgent): Promise<RemoteResponse> {
    const { params, webhooks } = this.#options;
    const calls = agent.pushNotifications && webhooks ? new WebhookCalls(webhooks) : undefined;
    const url = calls?.url;
    if (calls !== undefined && url !== undefined) {
      this.#calls = calls;
      const said = await this.#client.call('send', params(agent, url), { ...this.#context(), agent });
      if (!('error' in said) || !CANNOT_CALL.includes(said.error.code)) return said;
      this.#calls = undefined;
      calls.close();
    }
    return await this.#client.call('send', params(agent), { ...this.#context(), agent });
  }

  /** Who did not wait may be told of the task as it was: still asking what we have just answered. How it is now will be called. */
  *#answered(said: RemoteResponse): Generator<AgentEvent> {
    const resumed = resumeOf(this.#turn).taskId !== undefined && this.#calls !== undefined;
    if (resumed && isAsking(said)) this.#reader.remember(said.event.task.id, said.event.task.contextId);
    else yield* this.#take(said);
  }

  /** Returns false when the agent turned out not to stream: nothing was begun then. */
  async *#stream(agent: RemoteAgent): AsyncGenerator<AgentEvent, boolean> {
    const params = this.#options.params(agent);
    let first = resumeOf(this.#turn).taskId !== undefined;
    for await (const said of this.#client.stream('stream', params, { ...this.#context(), agent })) {
      if ('error' in said && CANNOT_STREAM.includes(said.error.code) && this.#reader.ids.taskId === undefined) return false;
      // An agent that is resumed may begin with its task as it was: still asking (seen with @a2a-js/sdk 1.3).
      if (first && isAsking(said)) this.#reader.remember(said.event.task.id, said.event.task.contextId);
      else yield* this.#take(said);
      first = false;
      if (this.#reader.ended) break;
    }
    return true;
  }

  *#take(said: RemoteResponse): Generator<AgentEvent> {
    if ('error' in said)
      throw new AgentFault(
        `the agent answered with error ${said.error.code}`,
        said.error.retryable || said.error.code === -32603,
      );
    if ('unknown' in said) this.#options.reader.onSkipped('unknown event');
    else yield* this.#reader.read(said.event);
  }

  /**
   * The agent stopped talking and its task has not ended: a broken stream, or a send that did not wait. Asks for the task until it is settled, and listens once more where
   * the agent streams. Text that was said in between is only complete if the task tells it; if it cannot, the turn fails and a new attempt replaces it.
   */
  async *#recover(agent: RemoteAgent): AsyncGenerator<AgentEvent> {
    for (let pauseMs = POLL_MS; ; pauseMs = Math.min(pauseMs * 2, POLL_MS_MAX)) {
      await this.#nextCall(pauseMs);
      const task = await this.#get();
      const whole = yield* this.#reader.snapshot(task);
      if (isSettled(task.status.state)) {
        if (!whole) throw new AgentFault(NO_TERMINAL_STATE, true);
        return yield* this.#reader.status(task.status, task.metadata);
      }
      if (isInterrupted(task.status.state)) yield* this.#reader.status(task.status, task.metadata);
      if (agent.streaming && !this.#resubscribed) yield* this.#resubscribe(task.id);
      else if (this.#calls === undefined) await delay(pauseMs, undefined, { signal: this.#turn.signal });
    }
  }

  /** Calls say when to look, not what there is: anybody may have made them, in any order. */
  async #nextCall(restMs: number): Promise<void> {
    const msMax = Math.min(this.#options.limits.lostCallMsMax, this.#endsAtMs - performance.now());
    await this.#calls?.next({ signal: this.#turn.signal, restMs, msMax });
    if (performance.now() >= this.#endsAtMs - CLOCK_MS) throw new AgentFault('the turn took too long', false);
  }

  async #get(): Promise<Task> {
    const { taskId } = this.#reader.ids;
    if (taskId === undefined) throw new AgentFault(NO_TERMINAL_STATE, true);
    for (let tries = 1; ; tries += 1) {
      try {
        const said = await this.#client.call('get', { id: taskId }, this.#context(CALL_MS_MAX));
        if ('event' in said && 'task' in said.event) return said.event.task;
        throw new AgentFault(NO_TERMINAL_STATE, true);
      } catch (error) {
        const again = error instanceof AgentFault && error.message === UNREACHABLE && tries < GET_TRIES_MAX;
        if (!again) throw error instanceof AgentFault ? new AgentFault(NO_TERMINAL_STATE, true, { cause: error }) : error;
        await delay(GET_RETRY_MS * 2 ** (tries - 1) * (0.75 + Math.random() / 2), undefined, { signal: this.#turn.signal });
      }
    }
  }

  /** What the agent says from now on, for those who watch. How it ends is read from the task, because something may be missing. */
  async *#resubscribe(taskId: string): AsyncGenerator<AgentEvent> {
    this.#resubscribed = true;
    try {
      for await (const said of this.#client.stream('subscribe', { id: taskId }, this.#context())) {
        if (!('event' in said)) return;
        const { event } = said;
        const state =
          'statusUpdate' in event ? event.statusUpdate.status.state : 'task' in event ? event.task.status.state : undefined;
        if (state !== undefined && isSettled(state)) return;
        yield* this.#reader.read(event);
        if (this.#reader.ended) return;
      }
    } catch (error) {
      if (!(error instanceof AgentFault)) throw error;
    }
  }

  /** Best effort: the agent should not work on for nobody. */
  async #cancel(): Promise<void> {
    const { taskId } = this.#reader.ids;
    if (this.#reader.ended || taskId === undefined) return;
    // The next turn goes on with the task that waits for credentials.
    if (this.#reader.waiting !== undefined && this.#turn.signal.reason !== TASK_ENDED) return;
    const signal = AbortSignal.timeout(CANCEL_MS_MAX);
    await this.#client
      .call('cancel', { id: taskId }, { signal, trace: this.#turn.trace, totalMsMax: CANCEL_MS_MAX })
      .catch(() => {});
  }

  #context(msMax = Number.POSITIVE_INFINITY) {
    const totalMsMax = Math.min(msMax, this.#endsAtMs - performance.now());
    const mayBeSilent = () => this.#reader.waiting !== undefined;
    return { signal: this.#turn.signal, trace: this.#turn.trace, totalMsMax, mayBeSilent };
  }
}

function isAsking(said: RemoteResponse): said is { event: { task: Task } } {
  return 'event' in said && 'task' in said.event && isInterrupted(said.event.task.status.state);
}

/** An agent that waits for credentials goes on by itself. */
function isSettled(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED';
}
