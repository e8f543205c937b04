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

/** One line for each target, with the figure of each run. */
export function runsLines(runs: readonly (readonly Verdict[])[]): string[] {
  const [first = []] = runs;
  return first.map(({ name, wanted }) => {
    const found = runs.map(verdicts => verdicts.find(verdict => verdict.name === name));
    const met = found.filter(verdict => verdict?.met).length;
    const figures = found.map(verdict => figureOf(verdict?.found));
    const bound = 'atLeast' in wanted ? `at least ${wanted.atLeast}` : `at most ${wanted.atMost}`;
    return `met in ${met} of ${runs.length}  ${name}: ${figures.join(', ')}, wanted ${bound}`;
  });
}

function figureOf(found: Target['found']): string {
  if (found === undefined) return 'not measured';
  return short(typeof found === 'number' ? found : found.median);
}

function short(value: number): string {
  return value >= 100 || value === 0 ? value.toFixed(0) : value.toPrecision(3);
}
