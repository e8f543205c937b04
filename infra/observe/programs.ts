import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The programs of the stack, each under the names that its packages use. */
const PROGRAMS = {
  prometheus: ['prometheus'],
  jaeger: ['jaeger'],
  grafana: ['grafana', 'grafana-server'],
} as const;
export type ProgramName = keyof typeof PROGRAMS;

/** Download page of each program, for a machine that lacks it. */
const SOURCES: Record<ProgramName, string> = {
  prometheus: 'apt install prometheus, brew install prometheus, or https://prometheus.io/download/',
  jaeger: 'version 2, https://www.jaegertracing.io/download/',
  grafana: 'https://grafana.com/grafana/download',
};

/** Paths of the programs on PATH. */
export function findPrograms(path: string): Partial<Record<ProgramName, string>> {
  const folders = path.split(delimiter).filter(folder => folder !== '');
  const found: Partial<Record<ProgramName, string>> = {};
  for (const [name, names] of Object.entries(PROGRAMS) as [ProgramName, readonly string[]][]) {
    const file = names.flatMap(one => folders.map(folder => join(folder, one))).find(existsSync);
    if (file !== undefined) found[name] = file;
  }
  return found;
}

/** One line for each program that is missing. */
export function missingLines(found: Partial<Record<ProgramName, string>>): string[] {
  const names = Object.keys(PROGRAMS) as ProgramName[];
  return names.filter(name => found[name] === undefined).map(name => `${name} is not on PATH: ${SOURCES[name]}`);
}
