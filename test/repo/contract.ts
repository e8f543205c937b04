import { readFileSync } from 'node:fs';
import { projectFiles, read } from './source-files.ts';

/** The documents that specified Hopline, and the number of requirements taken from each. */
export const DOCUMENTS = {
  S0: { title: 'A2A Event Flow Architecture', origin: 'CAIPE (cnoe-io/ai-platform-engineering), October 2025', rows: 47 },
  S1: { title: 'LangGraph to A2A mapping', origin: 'Aion Server', rows: 32 },
  S2: {
    title: 'Sub-Agent Tool Message Streaming Analysis',
    origin: 'CAIPE (cnoe-io/ai-platform-engineering), 2025',
    rows: 41,
  },
  S3: {
    title: 'Protocol Flow and Sequence Diagrams',
    origin: 'the Ruby gem wilsonsilva/a2a, docs/architecture/flow.md',
    rows: 33,
  },
  S4: {
    title: 'A2A Protocol Core Architecture: Agent Cards, Tasks, and Message Flow',
    origin: 'part 2 of a series of 8 articles, March 2026',
    rows: 44,
  },
} as const;

/** One requirement of a document. */
type Row = {
  requirement: string;
  /** How Hopline differs from the document. */
  deviation?: string;
};

/** Hopline's behavior where the documents, or versions of A2A, contradict each other. */
type Decision = {
  conflict: string;
  decision: string;
  /** Rows whose tests prove the decision, in addition to the tests that name it. */
  rows: string[];
};

/** A test whose title ends with the rows it proves: `first frame precedes any agent work [S0-2 C-8]`. */
export type Proof = { path: string; title: string };

const json = (name: string) => JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));

export const rows: Record<string, Row> = json('rows.json');
export const decisions: Record<string, Decision> = json('decisions.json');

const PROVEN = /\b(?:test|it)\(\s*(['"`])((?:\\.|(?!\1).)*?) \[((?:(?:S\d|C)-\d+ ?)+)\]\1/g;

/** The tests that prove each row and decision, by id. */
export function proofs(): Map<string, Proof[]> {
  const found = new Map<string, Proof[]>();
  for (const path of projectFiles().filter(file => file.endsWith('.test.ts'))) {
    for (const match of read(path).matchAll(PROVEN)) {
      const title = match[2]!.replaceAll(/\\(.)/g, '$1').replaceAll(/\$\{[^}]*\}/g, '…');
      for (const id of match[3]!.trim().split(' ')) found.set(id, [...(found.get(id) ?? []), { path, title }]);
    }
  }
  return found;
}
