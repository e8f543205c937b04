import { type HopMetrics, snakeWord } from '@hopline/telemetry';
import type { LogNames } from './names.ts';
import type { LogEvent } from './options.ts';

export type LogMetricsOptions = { watchesRetention: boolean; removesUnknown: boolean };

/** The metrics of a log: its connection, its oldest entries, and a count of its events. */
export class LogMetrics {
  isConnected = false;
  readonly #metrics: HopMetrics;
  readonly #options: LogMetricsOptions;
  #factsStreams: readonly string[] = [];
  readonly #firstEntries = new Map<string, { at: number; ageMsMax: number | undefined }>();

  constructor(metrics: HopMetrics, options: LogMetricsOptions) {
    this.#metrics = metrics;
    this.#options = options;
    metrics.logConnected.observe(() => [[this.isConnected ? 1 : 0, {}]]);
    if (!options.watchesRetention) return;
    const entries = () => [...this.#firstEntries];
    metrics.logFirstTimestamp.observe(() => entries().map(([stream, { at }]) => [at / 1_000, { stream }]));
    metrics.logAgeLimit.observe(() =>
      entries().flatMap(([stream, { ageMsMax }]) => (ageMsMax === undefined ? [] : [[ageMsMax / 1_000, { stream }] as const])),
    );
  }

  /** Creates the counters of the streams at once: a counter that first appears with an event would hide that event from every rate. */
  startAtZero(names: LogNames): void {
    this.#factsStreams = names.factsStreams;
    const { logShortages, unknownRemoved } = this.#metrics;
    const { watchesRetention, removesUnknown } = this.#options;
    const reasons = ['full', ...(watchesRetention ? (['nearly_full', 'removes_by_bytes'] as const) : [])] as const;
    for (const stream of names.allStreams()) for (const reason of reasons) logShortages.add(0, { stream, reason });
    for (const reason of ['inputs_rebuilt', 'inputs_behind'] as const)
      for (const stream of names.inputsStreams) logShortages.add(0, { stream, reason });
    if (!removesUnknown) return;
    for (const stream of names.allStreams()) unknownRemoved.add(0, { stream, kind: 'unknown_consumers' });
    unknownRemoved.add(0, { stream: names.workStream, kind: 'unknown_work' });
  }

  /** `at`: when the oldest entry of a stream was stored, in epoch milliseconds. `ageMsMax`: the age at which the stream removes entries. */
  onFirstEntry(stream: string, at: number, ageMsMax: number | undefined): void {
    if (this.#factsStreams.includes(stream)) this.#firstEntries.set(stream, { at, ageMsMax });
  }

  onEvent(event: LogEvent): void {
    const { unknownRemoved, logShortages, logEvents, deadLetters } = this.#metrics;
    if (event.type === 'disconnected' || event.type === 'reconnected') this.isConnected = event.type === 'reconnected';
    if ('count' in event) unknownRemoved.add(event.count, { stream: event.stream, kind: snakeWord(event.type) });
    else if ('stream' in event && event.type !== 'bounds-refused' && event.type !== 'leader-moved')
      logShortages.add(1, { stream: event.stream, reason: snakeWord(event.type) });
    else logEvents.add(1, { kind: snakeWord(event.type) });
    if (event.type === 'dead-letter') deadLetters.add(1, { agent: event.role.replace(/^agent\./, ''), reason: 'undeliverable' });
  }
}
