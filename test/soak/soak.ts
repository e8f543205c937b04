import { setTimeout as delay } from 'node:timers/promises';
import { createClient } from '@hopline/client';
import { monotonicMs } from '../bench/measure/clock.ts';
import { STREAMED } from '../bench/tokens.ts';
import { type Sample, sampleOf } from './samples.ts';
import { SoakCluster } from './soak-cluster.ts';
import { TimedText } from './timed-token.ts';

export type SoakOptions = {
  minutes: number;
  /** Answers at one time. */
  streams: number;
  /** Tokens of an answer, and milliseconds between two. */
  tokens: number;
  everyMs: number;
  /** Time between two restarts of a process, between two visiting agents, and between two samples, in milliseconds. */
  restartEveryMs: number;
  visitEveryMs: number;
  sampleEveryMs: number;
  /** Shards of the log. Default: the number of the product. */
  shards?: number;
  print: (line: string) => void;
  /** Called after each sample with the results so far. */
  onSample?: (result: SoakResult) => void;
};

export type SoakResult = {
  samples: Sample[];
  answers: number;
  tokens: number;
  /** Answers whose text began again, because another attempt replaced it. */
  replaced: number;
  restarts: number;
  visits: number;
  /** A line for each incomplete answer, and for each process that did not start. */
  faults: string[];
};

const FAULTS_KEPT_MAX = 100;

/** Keeps a cluster under an even load while its processes restart in turn and agents come and go. Rejects only if the cluster does not start. */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  await using cluster = await SoakCluster.start(options.shards);
  const result: SoakResult = { samples: [], answers: 0, tokens: 0, replaced: 0, restarts: 0, visits: 0, faults: [] };
  const run = new Run(cluster, options, result);
  await run.run();
  return result;
}

class Run {
  readonly #cluster: SoakCluster;
  readonly #options: SoakOptions;
  readonly #result: SoakResult;
  readonly #endsAtMs: number;
  #agesMs: number[] = [];

  constructor(cluster: SoakCluster, options: SoakOptions, result: SoakResult) {
    this.#cluster = cluster;
    this.#options = options;
    this.#result = result;
    this.#endsAtMs = performance.now() + options.minutes * 60_000;
  }

  async run(): Promise<void> {
    const { streams, tokens, everyMs, restartEveryMs, visitEveryMs, sampleEveryMs } = this.#options;
    const lanes = Array.from({ length: streams }, async (_, lane) => {
      // Spread over the length of an answer, as users are.
      await delay((lane * tokens * everyMs) / streams);
      while (!this.#isOver) await this.#attempt(`answer of stream ${lane + 1}`, () => this.#ask('talker', tokens));
    });
    await Promise.all([
      ...lanes,
      this.#every(restartEveryMs, () => this.#restartNext()),
      this.#every(visitEveryMs, () => this.#visit()),
      this.#every(sampleEveryMs, () => this.#sample()),
    ]);
  }

  get #isOver(): boolean {
    return performance.now() >= this.#endsAtMs;
  }

  async #every(everyMs: number, work: () => Promise<void>): Promise<void> {
    for (;;) {
      await delay(Math.min(everyMs, Math.max(0, this.#endsAtMs - performance.now())));
      if (this.#isOver) return;
      await this.#attempt('soak', work);
    }
  }

  async #attempt(what: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { faults } = this.#result;
      const fault = `${what}: ${(error as Error).message.split('\n')[0]}`;
      if (faults.length < FAULTS_KEPT_MAX) faults.push(fault);
      this.#options.print(`fault: ${fault}`);
      await delay(this.#options.everyMs);
    }
  }

  async #ask(agent: string, tokens: number): Promise<void> {
    const client = createClient({ url: this.#cluster.url });
    const text = new TimedText();
    let state = '';
    for await (const item of client.stream(`${tokens} ${this.#options.everyMs}`, { metadata: { agent } })) {
      if ('gap' in item) throw new Error('events were removed before they were read');
      if ('statusUpdate' in item.event) ({ state } = item.event.statusUpdate.status);
      if (!('artifactUpdate' in item.event)) continue;
      const { artifact, append } = item.event.artifactUpdate;
      if (artifact.name !== STREAMED) continue;
      if (append !== true && text.tokens > 0) {
        this.#result.replaced += 1;
        text.clear();
      }
      const nowMs = monotonicMs();
      for (const sentAtMs of text.add(artifact.parts.map(part => part.text ?? '').join(''))) this.#agesMs.push(nowMs - sentAtMs);
    }
    if (state !== 'TASK_STATE_COMPLETED' || text.tokens !== tokens)
      throw new Error(`${state} after ${text.tokens} of ${tokens} tokens`);
    this.#result.answers += 1;
    this.#result.tokens += tokens;
  }

  async #restartNext(): Promise<void> {
    const { replicas } = this.#cluster;
    const replica = replicas[this.#result.restarts++ % replicas.length]!;
    await replica.kill('SIGTERM');
    await replica.start();
  }

  /** An agent of a new name starts, answers and stops. */
  async #visit(): Promise<void> {
    const name = `visitor-${++this.#result.visits}`;
    const visitor = await this.#cluster.visitor(name);
    try {
      await visitor.start();
      await this.#ask(name, Math.min(this.#options.tokens, 20));
      await visitor.kill('SIGTERM');
    } finally {
      await visitor.kill();
    }
  }

  async #sample(): Promise<void> {
    const { minutes } = this.#options;
    const agesMs = this.#agesMs;
    this.#agesMs = [];
    const sample = await sampleOf(this.#cluster, agesMs, minutes - (this.#endsAtMs - performance.now()) / 60_000);
    this.#result.samples.push(sample);
    this.#options.onSample?.(this.#result);
  }
}
