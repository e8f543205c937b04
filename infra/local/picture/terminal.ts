/** Output of a terminal, at a time in milliseconds after the start of the recording. */
export type Output = { ms: number; text: string };

type Style = 'plain' | 'dim' | 'bold' | 'red';
/** Text in one row that appeared at one time. Rows and columns are counted from 0. */
export type Run = { ms: number; row: number; column: number; cells: number; text: string; style: Style };

/** The styles of the programs that are recorded. Any other code is an error, so that a picture cannot silently lack something. */
const STYLES: Record<string, Style> = { '': 'plain', '0': 'plain', '1': 'bold', '1;36': 'bold', '2': 'dim', '31': 'red' };

/** Where the text of a terminal stands: lines are wrapped at `columns`, and nothing scrolls away. */
export function layout(outputs: readonly Output[], columns: number): Run[] {
  const runs: Run[] = [];
  let [row, column, style]: [number, number, Style] = [0, 0, 'plain'];
  for (const { ms, text } of outputs) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them.
    for (const [part, code] of text.matchAll(/\u001b\[([\d;]*)m|\r?\n|\r|[^\u001b\r\n]+|\u001b/g)) {
      if (code !== undefined) {
        const known = STYLES[code];
        if (known === undefined) throw new Error(`unsupported terminal style: ${code}`);
        style = known;
      } else if (part.endsWith('\n')) {
        row += 1;
        column = 0;
      } else if (part === '\r') column = 0;
      else if (part === '\u001b') throw new Error('unsupported terminal control sequence: only styles are');
      else
        for (const word of part.match(/\s+|\S+/g)!) {
          const cells = cellsOf(word);
          // A person reads words, so a line is wrapped before a word, unlike in a terminal.
          if (column > 0 && column + cells > columns) {
            row += 1;
            column = 0;
            if (/^\s/.test(word)) continue;
          }
          const last = runs.at(-1);
          const isNext = last?.ms === ms && last.row === row && last.style === style && last.column + last.cells === column;
          if (isNext) {
            last.text += word;
            last.cells += cells;
          } else runs.push({ ms, row, column, cells, text: word, style });
          column += cells;
        }
    }
  }
  return runs;
}

/** How many cells a text takes: pictographs take two. */
function cellsOf(text: string): number {
  let cells = 0;
  for (const character of text) cells += /\p{Extended_Pictographic}/u.test(character) ? 2 : 1;
  return cells;
}
