import { DOCUMENTS, decisions, type Proof, proofs, rows } from './contract.ts';

const INTRO = `# Contract

What Hopline does, requirement by requirement, and the tests that prove it. The requirements come from five public documents about A2A
systems; where those contradict each other, a decision (C-n) applies. Sources and tests cite the ids.

\`node test/repo/write-contract.ts\` generates this file from \`test/repo/rows.json\`, \`test/repo/decisions.json\` and the titles of the
tests; a test fails if the file is out of date, if a row has no test, or if a title names an unknown row.
`;

/** The text of docs/contract.md. */
export function contractDocument(): string {
  const proven = proofs();
  const documents = Object.entries(DOCUMENTS).map(([id, { title, origin }]) => {
    const rowsOfId = Object.entries(rows).filter(([row]) => row.startsWith(`${id}-`));
    const entries = rowsOfId.map(([row, { requirement, deviation }]) => entry(row, requirement, deviation, proven.get(row)));
    return `## ${id}: ${title}\n\nOrigin: ${origin}.\n\n${entries.join('')}`;
  });
  const decided = Object.entries(decisions).map(([id, { conflict, decision, rows: related }]) => {
    const links = related.map(row => `[${row}](#${row.toLowerCase()})`).join(', ');
    return entry(id, `Conflict: ${conflict}. Decision: ${decision} See ${links}.`, undefined, proven.get(id));
  });
  return `${INTRO}\n${documents.join('\n')}\n## C: Decisions\n\n${decided.join('')}`;
}

function entry(id: string, text: string, deviation: string | undefined, tests: Proof[] = []): string {
  const byPath = Map.groupBy(tests, test => test.path);
  const proven = [...byPath].map(([path, found]) => {
    const titles = found.map(test => `"${escaped(test.title)}"`).join(' · ');
    return `  - [${path}](../${path}) ${titles}\n`;
  });
  const differs = deviation === undefined ? '' : `\n  Deviation: ${deviation}`;
  return `- <a id="${id.toLowerCase()}"></a>**[${id}]** ${text}${differs}\n${proven.join('')}`;
}

/** Characters that Markdown would interpret in a title. */
const escaped = (title: string) => title.replaceAll(/[*_<[\]|]/g, '\\$&');
