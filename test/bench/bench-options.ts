import { parseArgs } from 'node:util';

const RUNS_MAX = 9;

/** Whether services have users of NATS: in one account, or with an account for each agent. */
const ACCOUNTS = ['one', 'agents'] as const;

/** `runs`: how often all questions are asked. `accounts`: undefined for a NATS server without users. */
export type BenchOptions = {
  help: boolean;
  quick: boolean;
  runs: number;
  accounts: (typeof ACCOUNTS)[number] | undefined;
  json: string | undefined;
  questions: string[];
};

/** Throws an Error of one sentence. */
export function readOptions(args: string[], known: readonly string[], byDefault = known): BenchOptions {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      runs: { type: 'string', default: '1' },
      accounts: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  const unknown = positionals.find(name => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no question "${unknown}"; there are ${known.join(', ')}`);
  if (!/^[1-9]$/.test(values.runs)) throw new Error(`--runs must be a whole number from 1 to ${RUNS_MAX}`);
  const accounts = ACCOUNTS.find(form => form === values.accounts);
  if (accounts !== values.accounts) throw new Error(`--accounts must be ${ACCOUNTS.join(' or ')}`);
  return {
    help: values.help,
    quick: values.quick,
    runs: Number(values.runs),
    accounts,
    json: values.json,
    questions: positionals.length > 0 ? positionals : [...byDefault],
  };
}

export function helpText(known: readonly string[]): string {
  return `npm run bench [-- question …] [-- --quick] [-- --runs N] [-- --accounts one|agents] [-- --json FILE]

Measures this checkout on this machine and prints every figure with its spread, then every target: met or missed, and by how much.
Questions: ${known.join(', ')}. All of them by default: about a quarter of an hour, 5 minutes with --quick.
--runs N asks all of them N times, and compares the targets of the runs at the end.
--accounts gives the services users of NATS: in one account, or with an account for each agent; without it NATS has no users.
--json FILE also writes everything as JSON.`;
}
