import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ArtifactFields, Json, RemoteIds, RemoteState, Shapes } from './remote-shapes.ts';

/** One step of a remote agent's script. */
export type Step =
  /** A token of the answer: a working status-update with a new message id (S0-22), or with `id`. */
  | { token: string; id?: string }
  | { pause: number }
  /** A tool notice as text of a working status (S2): `🔧 Calling tool: **x**`, `✅ Tool **x** completed`, `❌ Tool **x** failed`. */
  | { notice: 'start' | 'end' | 'failed'; tool: string }
  | { artifact: Partial<ArtifactFields>; append?: boolean; lastChunk?: boolean }
  /** The empty `current_result` of S0-27. */
  | { marker: true }
  | { status: RemoteState; text?: string; parts?: Json[]; metadata?: Json; id?: string }
  | { complete: true; text?: string }
  | { fail: true; text?: string; metadata?: Json }
  | { inputRequired: string }
  /** The answer is one message; no task is on the wire. */
  | { message: string }
  /** Any JSON as the result of a frame. */
  | { result: unknown }
  /** A JSON-RPC error instead of a result. */
  | { error: number }
  /** Any bytes on the stream. */
  | { raw: string }
  /** Closes the connection; the task continues with the next step. */
  | { cut: true }
  /** Sends nothing more and keeps the connection open. */
  | { hang: true };

/** A complete answer in the shape of S0: one status per token, the empty marker, and a final status without a message. */
export function answer(tokens: Iterable<string>): Step[] {
  return [...Array.from(tokens, token => ({ token })), { marker: true }, { complete: true }];
}

export type Frame =
  | { kind: 'result'; result: unknown }
  | { kind: 'error'; code: number; message: string }
  | { kind: 'raw'; bytes: string }
  | { kind: 'cut' };

const NOTICES = {
  start: (tool: string) => `🔧 Calling tool: **${tool}**\n`,
  end: (tool: string) => `✅ Tool **${tool}** completed\n`,
  failed: (tool: string) => `❌ Tool **${tool}** failed\n`,
};

/**
 * A task keeps either all statuses of its agent, in its history like the SDKs, or only the newest one, which is one piece of the text. It always
 * keeps artifacts.
 */
export type KeptStatuses = 'all' | 'newest';

/** A task of the remote agent. It keeps all frames, so that any number of connections can follow it from any frame on. */
export class RemoteTask {
  readonly ids: RemoteIds;
  readonly frames: Frame[] = [];
  turn = 0;
  readonly #shapes: Shapes;
  readonly #keeps: KeptStatuses;
  readonly #history: Json[] = [];
  readonly #artifacts = new Map<string, Json>();
  #state: RemoteState = 'submitted';
  #message: Json | undefined;
  #direct: Json | undefined;
  #error: Extract<Frame, { kind: 'error' }> | undefined;
  #playing = false;
  #stop = new AbortController();
  #changed = Promise.withResolvers<void>();

  constructor(shapes: Shapes, contextId: string, keeps: KeptStatuses = 'all') {
    this.#shapes = shapes;
    this.#keeps = keeps;
    this.ids = { taskId: randomUUID(), contextId };
  }

  /** Adds the caller's message; returns the index of the turn's first frame. */
  begin(message: Json): number {
    this.turn += 1;
    this.#playing = true;
    this.#state = this.turn === 1 ? 'submitted' : 'working';
    this.#message = undefined;
    this.#history.push(this.#shapes.userMessage(this.ids, message));
    return this.frames.length;
  }

  /** Runs a turn. Its first frame is the task, unless the first step is not a task event. */
  async play(steps: Iterable<Step> | AsyncIterable<Step>): Promise<void> {
    let first = true;
    try {
      for await (const step of steps) {
        if (this.#stop.signal.aborted) break;
        const bare =
          'message' in step || 'result' in step || 'error' in step || 'raw' in step || 'hang' in step || 'pause' in step;
        if (first && !bare) this.#emit(this.#shapes.taskResult(this.snapshot()));
        if (!('pause' in step)) first = false;
        await this.#do(step);
      }
    } catch (error) {
      if (!this.#stop.signal.aborted) throw error;
    } finally {
      this.#playing = false;
      this.#wake();
    }
  }

  async *follow(from: number): AsyncGenerator<Frame> {
    for (let next = from; ; ) {
      const frame = this.frames[next];
      if (frame !== undefined) {
        next += 1;
        yield frame;
      } else if (!this.#playing) return;
      else await this.#changed.promise;
    }
  }

  async ended(): Promise<void> {
    while (this.#playing) await this.#changed.promise;
  }

  cancel(): void {
    if (this.#state === 'completed' || this.#state === 'failed') return;
    this.#status('canceled', undefined);
    this.stop();
  }

  stop(): void {
    this.#stop.abort();
  }

  snapshot(): Json {
    const artifacts = [...this.#artifacts.values()];
    return this.#shapes.task(this.ids, this.#state, {
      history: this.#history,
      artifacts,
      ...(this.#message && { message: this.#message }),
    });
  }

  /** Response to a blocking send. */
  sendResult(): Json {
    if (this.#error !== undefined) return { error: { code: this.#error.code, message: this.#error.message } };
    return { result: this.#direct ?? this.#shapes.taskResult(this.snapshot()) };
  }

  async #do(step: Step): Promise<void> {
    if ('token' in step) this.#status('working', { text: step.token, ...(step.id !== undefined && { messageId: step.id }) });
    else if ('pause' in step) await delay(step.pause, undefined, { signal: this.#stop.signal });
    else if ('notice' in step) this.#status('working', { text: NOTICES[step.notice](step.tool) });
    else if ('artifact' in step) this.#artifact(step.artifact, step.append, step.lastChunk);
    else if ('marker' in step) this.#artifact({ name: 'current_result', text: '' }, false, true);
    else if ('complete' in step) this.#status('completed', step.text === undefined ? undefined : { text: step.text });
    else if ('fail' in step) this.#status('failed', step.text === undefined ? undefined : { text: step.text }, step.metadata);
    else if ('inputRequired' in step) this.#status('input-required', { text: step.inputRequired });
    else if ('status' in step) this.#statusStep(step);
    else if ('message' in step) this.#answerDirectly(step.message);
    else if ('result' in step) this.#emit(step.result);
    else if ('raw' in step) this.#push({ kind: 'raw', bytes: step.raw });
    else if ('cut' in step) this.#push({ kind: 'cut' });
    else if ('hang' in step) await delay(2 ** 31 - 1, undefined, { signal: this.#stop.signal });
    else this.#fail(step.error);
  }

  #statusStep(step: Extract<Step, { status: RemoteState }>): void {
    const { status, text, parts, metadata, id } = step;
    const fields = text === undefined && parts === undefined ? undefined : { text, parts, messageId: id };
    this.#status(status, fields, metadata);
  }

  #status(
    state: RemoteState,
    fields: { text?: string | undefined; parts?: Json[] | undefined; messageId?: string | undefined } | undefined,
    metadata?: Json,
  ): void {
    const { text, parts, messageId } = fields ?? {};
    const message =
      fields &&
      this.#shapes.message(this.ids, {
        messageId: messageId ?? randomUUID(),
        ...(text !== undefined && { text }),
        ...(parts !== undefined && { parts }),
      });
    this.#state = state;
    this.#message = message;
    if (message !== undefined && state === 'working' && this.#keeps === 'all') this.#history.push(message);
    this.#emit(this.#shapes.statusUpdate(this.ids, state, message, metadata));
  }

  #artifact(fields: Partial<ArtifactFields>, append: boolean | undefined, lastChunk: boolean | undefined): void {
    const artifact = this.#shapes.artifact({ artifactId: randomUUID(), ...fields });
    const id = artifact.artifactId as string;
    const known = this.#artifacts.get(id);
    const parts = [...(append && known ? (known.parts as Json[]) : []), ...(artifact.parts as Json[])];
    this.#artifacts.set(id, { ...artifact, parts });
    this.#emit(this.#shapes.artifactUpdate(this.ids, artifact, append, lastChunk));
  }

  #answerDirectly(text: string): void {
    this.#state = 'completed';
    this.#direct = this.#shapes.messageResult(this.#shapes.message(this.ids, { messageId: randomUUID(), text }));
    this.#emit(this.#direct);
  }

  #fail(code: number): void {
    this.#error = { kind: 'error', code, message: 'secret detail of the remote agent' };
    this.#push(this.#error);
  }

  #emit(result: unknown): void {
    this.#push({ kind: 'result', result });
  }

  #push(frame: Frame): void {
    this.frames.push(frame);
    this.#wake();
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers();
    resolve();
  }
}
