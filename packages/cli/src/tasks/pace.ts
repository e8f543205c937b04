import { parsed } from '../command/options.ts';
import { UsageError } from '../command/usage-error.ts';

const PACE_MIN = 0.01;
const PACE_MAX = 10_000;

/** Factor on the recorded speed; Infinity means no waiting. */
export const PACE = parsed('PACE', 'recorded (default), a factor such as 10x or 0.5x, or max: without waiting', paceOf);

function paceOf(text: string): number {
  if (text === 'recorded') return 1;
  if (text === 'max') return Number.POSITIVE_INFINITY;
  const [, factor] = /^(\d{1,5}(?:\.\d{1,3})?)x$/.exec(text) ?? [];
  const pace = Number(factor);
  if (pace >= PACE_MIN && pace <= PACE_MAX) return pace;
  throw new UsageError(`must be recorded, max, or a factor from ${PACE_MIN}x to ${PACE_MAX}x`);
}
