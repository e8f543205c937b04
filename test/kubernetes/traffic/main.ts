import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { wholeNumber } from '../../support/whole-number.ts';
import { missingPrograms } from '../cluster.ts';
import { FAULT_KINDS, FAULT_NAMES, type FaultName } from './fault-kinds.ts';
import { brokenPromises, markdownOf, type TrafficReport } from './report.ts';
import { runTraffic } from './traffic.ts';

const HELP = `npm run traffic [-- --minutes N] [--seed S] [--clients N] [--fault NAME]… [--report FILE]

Installs the chart on the cluster that KUBECONFIG names, with two processes of each service, three NATS nodes and TLS, and asks without a pause while agents come and go,
pods are evicted and killed, values change, NATS restarts, certificates are replaced and streams and volumes fill. Ends with what clients saw and which alerts fired.
The images of \`npm run image\` must be loaded into the cluster.

--minutes N    length (default 60)
--seed S       decides the faults, their order and what they hit (default 1)
--clients N    questions at one time (default 6)
--fault NAME   only this kind; may be repeated:
${FAULT_NAMES.map(name => `                 ${name.padEnd(14)}${FAULT_KINDS[name].name}`).join('\n')}
--report FILE  writes FILE.md and FILE.json, after each fault

The exit code is 1 when text was lost or doubled, a question has no end or two tasks, or a request failed that the fault does not explain. Ctrl-C ends the run with its report.
`;

type CommandOptions = {
  minutes: number;
  seed: number;
  clients: number;
  faults: readonly FaultName[];
  report: string | undefined;
};

const print = (line: string) => process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`);

function readOptions(args: string[]): CommandOptions | 'help' {
  const { values } = parseArgs({
    args,
    options: {
      minutes: { type: 'string', default: '60' },
      seed: { type: 'string', default: '1' },
      clients: { type: 'string', default: '6' },
      fault: { type: 'string', multiple: true },
      report: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const unknown = values.fault?.find(name => !Object.hasOwn(FAULT_KINDS, name));
  if (unknown !== undefined) throw new Error(`--fault must be one of ${FAULT_NAMES.join(', ')}, not ${unknown}`);
  const positive = (name: string, text: string) => {
    const number = wholeNumber(`--${name}`, text);
    if (number === 0) throw new Error(`--${name} must be at least 1`);
    return number;
  };
  return {
    minutes: positive('minutes', values.minutes),
    seed: wholeNumber('--seed', values.seed),
    clients: positive('clients', values.clients),
    faults: (values.fault as FaultName[] | undefined) ?? FAULT_NAMES,
    report: values.report,
  };
}

async function main({ report: file, ...options }: CommandOptions): Promise<number> {
  const missing = missingPrograms();
  if (missing !== undefined) throw new Error(missing);
  const interrupted = new AbortController();
  // The kit of nats-server, of which only the version is read here, would end this process at once and leave the namespace behind. A terminal and npm both pass
  // on an interrupt, so a second one means nothing else than the first.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.removeAllListeners(signal);
    process.on(signal, () => {
      if (!interrupted.signal.aborted) print(`${signal}: the run ends, and removes its namespace`);
      interrupted.abort();
    });
  }
  const onReport = (report: TrafficReport) => {
    if (file === undefined) return;
    writeFileSync(`${file}.md`, markdownOf(report));
    writeFileSync(`${file}.json`, `${JSON.stringify(report, undefined, 1)}\n`);
  };
  const report = await runTraffic({ ...options, print, signal: interrupted.signal, onReport });
  process.stdout.write(`\n${markdownOf(report)}`);
  return brokenPromises(report).length === 0 ? 0 : 1;
}

try {
  const options = readOptions(process.argv.slice(2).filter(arg => arg !== '--'));
  if (options === 'help') process.stdout.write(HELP);
  else process.exitCode = await main(options);
} catch (error) {
  process.stderr.write(`traffic: ${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 2;
}
process.exit();
