import type { Wire } from '../remote-server/wires.ts';
import { TOKEN_CHARS, textOfTokens } from '../tokens.ts';
import { dataOf } from './sse-connection.ts';

export type AnswerReport = {
  taskId: string;
  /** Monotonic milliseconds: request sent, first text, terminal state. */
  askedAtMs: number;
  firstTextAtMs: number;
  endedAtMs: number;
  frames: number;
  /** The text equals the expected tokens, byte for byte. */
  intact: boolean;
  tokens: number;
  /** Pairs of monotonic milliseconds and number of tokens so far, one per frame with text. */
  arrivals: Float64Array;
};

/** Folds the stream of one task: the text of one artifact, and the time of each part. */
export class Answer {
  taskId = '';
  readonly #wire: Wire;
  readonly #artifact: string;
  readonly #askedAtMs: number;
  readonly #arrivals: number[] = [];
  #text = '';
  #frames = 0;
  #endedAtMs = 0;
  #state = '';

  constructor(wire: Wire, artifact: string, askedAtMs: number) {
    this.#wire = wire;
    this.#artifact = artifact;
    this.#askedAtMs = askedAtMs;
  }

  take(frame: string, atMs: number): void {
    const data = dataOf(frame);
    if (data === undefined) return;
    this.#frames += 1;
    const { taskId, artifact, text, isReplaced = false, endedAs } = this.#wire.read(data);
    if (taskId !== undefined) this.taskId = taskId;
    if (text !== undefined && artifact === this.#artifact) {
      this.#text = isReplaced ? text : this.#text + text;
      this.#arrivals.push(atMs, this.#text.length / TOKEN_CHARS);
    }
    if (endedAs === undefined) return;
    this.#endedAtMs = atMs;
    this.#state = endedAs;
  }

  /** Monotonic milliseconds of the terminal state; 0 before. */
  get endedAtMs(): number {
    return this.#endedAtMs;
  }

  report(tokens: number): AnswerReport {
    return {
      taskId: this.taskId,
      askedAtMs: this.#askedAtMs,
      firstTextAtMs: this.#arrivals[0] ?? 0,
      endedAtMs: this.#endedAtMs,
      frames: this.#frames,
      intact: this.#state === 'TASK_STATE_COMPLETED' && this.#text === textOfTokens(tokens),
      tokens: this.#text.length / TOKEN_CHARS,
      arrivals: Float64Array.from(this.#arrivals),
    };
  }
}
