import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { killAtExit } from './kill-at-exit.ts';

/** Methods of a bench process. Arguments and results are structured-cloned. */
export type Methods = { [name: string]: (params: never) => Promise<unknown> };

type Call = { id: number; method: string; params: unknown };
type Answer = { id: number; result: unknown } | { id: number; failed: string };

/** Each generator and reader of load is a separate process, so that its work does not delay the clock of another. */
export class LoadProcess<M extends Methods> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>();
  readonly #released: () => void;
  #calls = 0;

  /** `nodeOptions`: as in NODE_OPTIONS. */
  constructor(main: URL, nodeOptions?: string) {
    const env = { ...process.env, ...(nodeOptions !== undefined && { NODE_OPTIONS: nodeOptions }) };
    this.#child = fork(fileURLToPath(main), { serialization: 'advanced', env });
    this.#released = killAtExit(this.pid);
    this.#child.on('message', message => this.#answered(message as Answer));
    this.#child.on('exit', () => {
      for (const { reject } of this.#open.values()) reject(new Error(`${main.pathname} has ended`));
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  call<K extends keyof M & string>(method: K, ...args: Parameters<M[K]>): Promise<Awaited<ReturnType<M[K]>>> {
    const id = ++this.#calls;
    const call: Call = { id, method, params: args[0] };
    return new Promise((resolve, reject) => {
      this.#open.set(id, { resolve, reject });
      this.#child.send(call);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#released();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  #answered(answer: Answer): void {
    const open = this.#open.get(answer.id);
    this.#open.delete(answer.id);
    if ('failed' in answer) open?.reject(new Error(answer.failed));
    else open?.resolve(answer.result as never);
  }
}

/** Child side: answers calls until the parent disconnects. */
export function answerCalls(methods: Methods): void {
  process.on('disconnect', () => process.exit());
  process.on('message', message => {
    const { id, method, params } = message as Call;
    Promise.resolve(methods[method]!(params as never)).then(
      result => process.send?.({ id, result } satisfies Answer),
      error =>
        process.send?.({ id, failed: error instanceof Error ? (error.stack ?? error.message) : String(error) } satisfies Answer),
    );
  });
}
