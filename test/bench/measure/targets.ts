import type { Spread } from './spread.ts';

/** Bound of a figure. A spread is compared by its median. */
export type Target = { name: string; wanted: { atLeast: number } | { atMost: number }; found: Spread | number | undefined };

export type Verdict = Target & { met: boolean; line: string };

export function judge(target: Target): Verdict {
  const { name, wanted, found } = target;
  const bound = 'atLeast' in wanted ? wanted.atLeast : wanted.atMost;
  const words = `wanted at ${'atLeast' in wanted ? 'least' : 'most'} ${bound}`;
  if (found === undefined) return { ...target, met: false, line: `MISSED  ${name}: not measured (${words})` };
  const value = typeof found === 'number' ? found : found.median;
  const met = 'atLeast' in wanted ? value >= bound : value <= bound;
  const around = typeof found === 'number' ? '' : ` (${short(found.min)} to ${short(found.max)} in ${found.rounds} rounds)`;
  const distance = bound === 0 ? '' : `, ${short((100 * Math.abs(value - bound)) / bound)} % ${met ? 'to spare' : 'off'}`;
  return { ...target, met, line: `${met ? 'met   ' : 'MISSED'}  ${name}: ${short(value)}${around}, ${words}${distance}` };
}

function short(value: number): string {
  return value >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(3);
}
