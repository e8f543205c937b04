import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../support/whole-number.ts';
import { mutate } from './mutations.ts';

const USAGE = `Runs the services in virtual time with faults, and verifies what they promise.

  npm run simulate -- [--seeds N] [--from N]     N seeds (default 200) from a first one (default 2000000)
  npm run simulate -- --first-failure            ends with the first seed that fails
  npm run simulate -- --seed N [--trace]         one seed again; --trace prints every event
  npm run simulate -- --seed N --shrink          the smallest scenario found that fails in the same way
  npm run simulate -- --merge FILE… [--report FILE]  judges the reports of several commands as one run

--report FILE: what the seeds met and found, as JSON; written after each seed.

--theme NAME: only faults of this kind, e.g. "rolling update" or none; by default the seed decides.

--log nats: log-jetstream and nats.js over a double of nats-server; by default the log in memory.

--mutation NAME: with a defect of the past, until a seed of its themes finds it; see mutations.ts.
See test/simulator/README.md.
`;

// The reader of the output has all that it wants, e.g. `head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

try {
  process.exitCode = await main(process.argv.slice(2).filter(arg => arg !== '--'));
} catch (error) {
  process.stderr.write(`simulate: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      seed: { type: 'string' },
      seeds: { type: 'string', default: '200' },
      // The first seed that draws everything (CLIENTS_SEED_MIN).
      from: { type: 'string', default: '2000000' },
      theme: { type: 'string' },
      log: { type: 'string', default: 'memory' },
      mutation: { type: 'string' },
      'first-failure': { type: 'boolean', default: false },
      report: { type: 'string' },
      merge: { type: 'boolean', default: false },
      trace: { type: 'boolean', default: false },
      shrink: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  if (positionals.length > 0 && !values.merge) throw new Error(`unexpected argument ${positionals[0]}; see --help`);
  const pathOf = (path: string) => resolve(process.env.INIT_CWD ?? process.cwd(), path);
  const report = values.report === undefined ? undefined : pathOf(values.report);
  if (values.mutation !== undefined) mutate(values.mutation);
  // Production code loads now, mutated or not.
  const { findDefect, mergeReports, runSeeds, runSeed } = await import('./command.ts');
  if (values.mutation !== undefined) return findDefect(values.mutation, wholeNumber('--seeds', values.seeds));
  if (values.merge) return mergeReports(positionals.map(pathOf), report);
  const { theme, log } = values;
  if (log !== 'memory' && log !== 'nats') throw new Error(`--log must be memory or nats, not ${log}`);
  if (values.seed === undefined) {
    const seeds = { from: wholeNumber('--from', values.from), seeds: wholeNumber('--seeds', values.seeds) };
    return runSeeds({ ...seeds, theme, log, stopsAtFailure: values['first-failure'], report });
  }
  return runSeed(wholeNumber('--seed', values.seed), { theme, log, trace: values.trace, shrink: values.shrink });
}
