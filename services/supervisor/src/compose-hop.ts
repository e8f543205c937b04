import { isTerminal } from '@hopline/a2a';
import type { Fact, TaskAggregate } from '@hopline/events';
import { SUPERVISOR } from '@hopline/task';
import type { HopMetrics, TraceCarrier } from '@hopline/telemetry';

/** Measures the time from the end of the last call of a turn to the end of the turn, from the facts that the supervisor reads anyway. */
export class ComposeHop {
  readonly #metrics: Pick<HopMetrics, 'hopDuration'>;
  readonly #trace: TraceCarrier | undefined;
  #callEndedAt: number | undefined;

  constructor(metrics: Pick<HopMetrics, 'hopDuration'>, trace: TraceCarrier | undefined) {
    this.#metrics = metrics;
    this.#trace = trace;
  }

  apply(facts: readonly Fact[]): void {
    for (const fact of facts) if (fact.kind === 'call.ended') this.#callEndedAt = fact.at;
  }

  end({ state, at }: Pick<TaskAggregate, 'state' | 'at'>): void {
    if (this.#callEndedAt === undefined || !isTerminal(state)) return;
    this.#metrics.hopDuration.recordMs(at - this.#callEndedAt, { hop: 'compose', agent: SUPERVISOR }, this.#trace);
  }
}
