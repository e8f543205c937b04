import { parseArgs } from 'node:util';

export type BenchOptions = { help: boolean; quick: boolean; json: string | undefined; questions: string[] };

/** Throws an Error of one sentence. */
export function readOptions(args: string[], known: readonly string[]): BenchOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const unknown = positionals.find(name => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no question "${unknown}"; there are ${known.join(', ')}`);
  return {
    help: values.help,
    quick: values.quick,
    json: values.json,
    questions: positionals.length > 0 ? positionals : [...known],
  };
}

export function helpText(known: readonly string[]): string {
  return `npm run bench [-- question …] [-- --quick] [-- --json FILE]

Measures this checkout on this machine and prints every figure with its spread, then every target: met or missed, and by how much.
Questions: ${known.join(', ')}. All of them by default: less than 10 minutes, less than 3 with --quick.
--json FILE also writes everything as JSON.`;
}
