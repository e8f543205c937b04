import { PassThrough } from 'node:stream';
import { spec } from 'node:test/reporters';

export type TestEvent = {
  type: string;
  data: { file?: string; details?: { duration_ms?: number }; message?: string; nesting?: number; level?: string };
};

/** Prints the results of all test processes, and repeats the failures at the end. */
export class TestReport {
  readonly #events = new PassThrough({ objectMode: true });
  readonly #printed: Promise<void>;

  constructor(output: NodeJS.WritableStream) {
    const lines = this.#events.compose(new spec());
    lines.on('data', (text: Buffer) => output.write(text));
    this.#printed = new Promise((resolve, reject) => lines.once('error', reject).once('end', resolve));
  }

  add(event: TestEvent): void {
    this.#events.write(event);
  }

  /** Resolves when everything is printed. */
  async end(): Promise<void> {
    this.#events.end();
    await this.#printed;
  }
}
