import { writeFileSync } from 'node:fs';
import { areaOf, describeUse, PENDING, pendingAreas, retiredUses } from './retired-words-search.ts';

/**
 * node test/repo/retired-words-report.ts              counts per area and per word
 * node test/repo/retired-words-report.ts PATH         each use below a path
 * node test/repo/retired-words-report.ts --shrink     removes areas that have become clean from the list of pending areas
 */
const argument = process.argv[2];
const uses = retiredUses();
const areas = uses.map(use => areaOf(use.path));

function counts(keys: string[]): string[] {
  const rows = [...Map.groupBy(keys, key => key)].map(([key, all]) => ({ key, count: all.length }));
  return rows.sort((a, b) => b.count - a.count).map(({ key, count }) => `${String(count).padStart(6)}  ${key}`);
}

function report(): string[] {
  if (argument === undefined) {
    return [...counts(areas), '', ...counts(uses.map(use => use.word)), '', `${uses.length} retired words`];
  }
  if (argument === '--shrink') {
    const pending = pendingAreas().filter(area => areas.includes(area));
    writeFileSync(PENDING, `${JSON.stringify(pending, null, 2)}\n`);
    return [`${pending.length} areas are pending`];
  }
  return uses.filter(({ path }) => path.startsWith(argument)).map(describeUse);
}

process.stdout.write(`${report().join('\n')}\n`);
