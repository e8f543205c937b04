import { FAULT_KINDS, type FaultKind, WITHIN_MS } from './fault-kinds.ts';
import type { Struck } from './report.ts';

/** An alert from the time when it fired until it ended, in milliseconds since 1970. */
export type Firing = { alert: string; severity: string; about: string; startMs: number; endMs: number };

export type JudgedFiring = Firing & {
  /** The fault that explains it, and why. Undefined: none does. */
  explanation: { fault: string; because: string } | undefined;
};

type Series = { metric: Record<string, string>; values: [seconds: number, value: string][] };

/** Labels of an alert that are the same for all alerts here, or are shown apart. */
const NOT_SHOWN = new Set(['__name__', 'alertname', 'alertstate', 'severity', 'job']);

/** The firings in the answer of Prometheus to a range query of `ALERTS{alertstate="firing"}` with steps of `stepMs`. */
export function firingsOf(series: readonly Series[], stepMs: number): Firing[] {
  const firings = series.flatMap(({ metric, values }) => {
    const labels = Object.entries(metric).filter(([name]) => !NOT_SHOWN.has(name));
    const about = labels.map(([name, value]) => `${name}=${value}`).join(', ');
    const found: Firing[] = [];
    for (const [seconds] of values) {
      const at = seconds * 1_000;
      const last = found.at(-1);
      if (last !== undefined && at - last.endMs <= stepMs) last.endMs = at;
      else found.push({ alert: metric.alertname ?? '', severity: metric.severity ?? '', about, startMs: at, endMs: at });
    }
    return found;
  });
  return firings.sort((a, b) => a.startMs - b.startMs);
}

/** Looks for the newest fault that explains each firing. */
export function judgeFirings(firings: readonly Firing[], struck: readonly Struck[]): JudgedFiring[] {
  return firings.map(firing => {
    const fault = struck.findLast(({ fault: name, beganAt, endedAt }) => {
      const explained = (FAULT_KINDS[name] as FaultKind).alerts[firing.alert];
      const { startMs } = firing;
      return explained !== undefined && startMs >= beganAt && startMs <= endedAt + (explained.withinMs ?? WITHIN_MS);
    });
    if (fault === undefined) return { ...firing, explanation: undefined };
    const { name, alerts } = FAULT_KINDS[fault.fault] as FaultKind;
    return { ...firing, explanation: { fault: name, because: alerts[firing.alert]!.because } };
  });
}
