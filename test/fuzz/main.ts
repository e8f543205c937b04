import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const HELP = `npm run fuzz [-- --minutes N] [--seed N]

Runs the fuzzers of test/fuzz with new random requests until the time is over; the file in progress ends first.

--minutes N  time budget (default 20)
--seed N     seed of the first round (default random); the seed of a round is printed

The exit code is 1 after a failure. test/fuzz/README.md: how to repeat one.
`;
const SEED_MAX = 2 ** 31 - 1;
const FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** Files whose requests depend on the seed. */
function fuzzers(): string[] {
  const isRandom = (file: string) => readFileSync(file, 'utf8').includes('fc.assert(');
  return globSync(join(FOLDER, '*.test.ts')).filter(isRandom).sort();
}

function wholeNumber(name: string, text: string, max: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > max) throw new Error(`--${name} must be a whole number from 1 to ${max}`);
  return value;
}

/** Resolves with true if all tests of the file passed with this seed. */
function passes(file: string, seed: number): Promise<boolean> {
  const env = { ...process.env, HOPLINE_FUZZ_SEED: String(seed) };
  const child = spawn(process.execPath, ['--test', '--test-reporter=dot', file], { env, stdio: 'inherit' });
  return new Promise((resolve, reject) => {
    child.once('error', reject).once('close', code => resolve(code === 0));
  });
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(randomInt(1, SEED_MAX)) },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const endsAt = performance.now() + wholeNumber('minutes', values.minutes, 24 * 60) * 60_000;
  let seed = wholeNumber('seed', values.seed, SEED_MAX);
  for (let runs = 1; ; seed = randomInt(1, SEED_MAX)) {
    for (const file of fuzzers()) {
      console.log(`\n${basename(file)} with seed ${seed}`);
      if (!(await passes(file, seed))) {
        console.error(`\nRepeat the failure: HOPLINE_FUZZ_SEED=${seed} node --test test/fuzz/${basename(file)}`);
        return 1;
      }
      if (performance.now() >= endsAt) {
        console.log(`\n${runs} ${runs === 1 ? 'file' : 'files'} without a failure`);
        return 0;
      }
      runs += 1;
    }
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
