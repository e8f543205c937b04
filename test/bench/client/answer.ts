import type { StreamResponse } from '@hopline/a2a';
import { isTerminal } from '@hopline/a2a';
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

/** Folds one task's stream of A2A 1.0 frames: the text of one artifact, and the time of each part. */
export class Answer {
  taskId = '';
  readonly #artifact: string;
  readonly #askedAtMs: number;
  readonly #arrivals: number[] = [];
  #text = '';
  #frames = 0;
  #endedAtMs = 0;
  #state = '';

  constructor(artifact: string, askedAtMs: number) {
    this.#artifact = artifact;
    this.#askedAtMs = askedAtMs;
  }

  take(frame: string, atMs: number): void {
    const data = dataOf(frame);
    if (data === undefined) return;
    const { result, error } = JSON.parse(data) as { result?: StreamResponse; error?: { message: string } };
    if (result === undefined) throw new Error(`the server returned an error: ${error?.message}`);
    this.#frames += 1;
    if ('artifactUpdate' in result) {
      const { artifact, append } = result.artifactUpdate;
      if (artifact.name !== this.#artifact) return;
      const text = artifact.parts.map(part => part.text ?? '').join('');
      this.#text = append ? this.#text + text : text;
      this.#arrivals.push(atMs, this.#text.length / TOKEN_CHARS);
    } else if ('task' in result) {
      this.taskId = result.task.id;
    } else if ('statusUpdate' in result && isTerminal(result.statusUpdate.status.state)) {
      this.#endedAtMs = atMs;
      this.#state = result.statusUpdate.status.state;
    }
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
