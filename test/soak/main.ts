import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { machine } from '../bench/measure/machine.ts';
import { pictureOf } from './picture.ts';
import { changesOf } from './samples.ts';
import { soak } from './soak.ts';

const HELP = `npm run soak [-- --minutes N] [--streams N] [--report FILE]

Keeps a cluster under an even load of streams at 20 tokens/s while its processes restart in turn, retention removes old records, and agents come and go.
Prints how memory, handles, consumers, subjects, disk and the age of tokens changed.

--minutes N    length (default 120)
--streams N    answers at one time (default 250, about half of what two cores sustain)
--report FILE  writes FILE.json and FILE.svg, after each sample

The exit code is 1 when an answer was not complete.
`;
const TOKENS = 400;
const EVERY_MS = 50;

const wholeNumber = (name: string, text: string): number => {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new Error(`--${name} must be a whole number from 1 to 99999`);
  return Number(text);
};

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '120' },
      streams: { type: 'string', default: '250' },
      report: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return 0;
  }
  const minutes = wholeNumber('minutes', values.minutes);
  const streams = wholeNumber('streams', values.streams);
  const result = await soak({
    minutes,
    streams,
    tokens: TOKENS,
    everyMs: EVERY_MS,
    restartEveryMs: 60_000,
    visitEveryMs: 60_000,
    sampleEveryMs: 20_000,
    print: line => console.log(line),
    onSample: soFar => {
      if (values.report === undefined) return;
      const report = { date: new Date().toISOString().slice(0, 10), minutes, streams, machine: machine(), ...soFar };
      writeFileSync(`${values.report}.json`, `${JSON.stringify(report, undefined, 1)}\n`);
      writeFileSync(`${values.report}.svg`, pictureOf(soFar.samples));
    },
  });
  for (const { name, early, late, ratio } of changesOf(result.samples))
    console.log(`${name.padEnd(24)} ${early.toFixed(1).padStart(9)} ${late.toFixed(1).padStart(9)}  x ${ratio.toFixed(2)}`);
  const { answers, tokens, replaced, restarts, visits, faults } = result;
  console.log(
    `${answers} answers, ${tokens} tokens, ${replaced} texts replaced by another attempt, ${restarts} restarts, ${visits} visiting agents, ${faults.length} faults`,
  );
  return faults.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(`soak: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 2;
}
