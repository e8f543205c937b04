import { Random } from '../../simulator/random.ts';
import { FAULT_KINDS, FAULT_NAMES, type FaultName } from './fault-kinds.ts';

export type Scheduled = {
  fault: FaultName;
  /** Time before it in which nothing else happens, so that its effects are its own. */
  quietMs: number;
  /** Decides what the fault hits. */
  seed: number;
};

const QUIET_MS = { min: 15_000, max: 45_000 };

/**
 * Faults without an end: every kind once in each round, in an order that the seed draws. What follows after a fault that was left out for lack of time is the
 * same.
 */
export function* drawSchedule(seed: number, kinds: readonly FaultName[] = FAULT_NAMES): Generator<Scheduled, never> {
  if (kinds.length === 0) throw new Error('the schedule needs a kind of fault');
  const random = new Random(seed, 'traffic');
  for (;;) {
    const left = [...kinds];
    while (left.length > 0) {
      const [fault] = left.splice(random.between(0, left.length - 1), 1);
      yield { fault: fault!, quietMs: random.between(QUIET_MS.min, QUIET_MS.max), seed: random.uint32() };
    }
  }
}

/** Whether a fault ends within `leftMs`, with its quiet time. */
export function fits({ fault, quietMs }: Scheduled, leftMs: number): boolean {
  return quietMs + FAULT_KINDS[fault].seconds * 1_000 <= leftMs;
}
