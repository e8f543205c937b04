import type { Finding } from './find.ts';
import type { Mutant, PackageName } from './mutant.ts';

export const TABLE_HEAD = ['| package | defect | found by | how soon | where |', '|---|---|---|---|---|'].join('\n');

/** A row of the table. Everything that found the mutant is in it, the first finding first. */
export function rowOf(of: PackageName, { name }: Pick<Mutant, 'name'>, findings: readonly Finding[]): string {
  const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const shown = (pick: (finding: Finding) => string) => findings.map(finding => cell(pick(finding))).join('; ');
  const by = findings.length === 0 ? '**nothing**' : shown(finding => finding.by);
  return `| ${of} | ${cell(name)} | ${by} | ${shown(({ seconds }) => `${Math.ceil(seconds)} s`)} | ${shown(({ what }) => what)} |`;
}
