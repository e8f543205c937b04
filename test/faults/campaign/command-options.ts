import { parseArgs } from 'node:util';
import { wholeNumber } from '../../support/whole-number.ts';
import { type ClusterSize, SIZE_DEFAULT } from './campaign-cluster.ts';
import { FAULT_CLASSES, type FaultClass } from './fault-classes.ts';

/** Tasks of a round of mixed faults. Its stores fit on the small disks. */
export const TASKS_OF_ROUND = 250;

const USAGE = `Runs tasks on real processes and a real NATS while faults happen, and verifies every promise for every task.

  npm run faults [-- --tasks N] [--replicas 1|3] [--seed S] [--class NAME]… [--report FILE]
  npm run faults -- --replicas 3 --nodes 5 --groups 4 --relays 4 --ingresses 3
  npm run faults -- --mixed [--tasks N] [--minutes N] [--nodes 1|3] [--seed S]

--mixed          no class: faults of every kind, two or three at a time, over agents of every kind, in rounds of
                 ${TASKS_OF_ROUND} tasks with a cluster of their own. The rounds have the seeds S, S+1, …; --tasks ${TASKS_OF_ROUND} --seed S+n repeats one
--tasks N        of all classes together, at least (default 5000; with --mixed 10000)
--minutes N      with --mixed: no round begins after this many minutes, however many tasks there were
--replicas N     1: one nats-server (default); 3: streams with three replicas
--nodes N        nats-servers with --replicas 3 (default 3)
--groups N       stream groups of the log (default 1)
--relays N       processes of the relay, an even number (default 2)
--ingresses N    processes of the ingress (default 2)
--faults N       minimum number of faults of each class, in place of its own
--seed S         decides tasks and faults (default 1); their timing depends on the machine
--class NAME     only this class; may be repeated. Classes with their number of replicas:
CLASSES
--concurrency N  tasks at one time (default 30)
--report FILE    writes FILE.md and FILE.json

The exit code is 1 when a promise was broken; a folder with the evidence is kept then.
`;

export type CommandOptions = {
  help: boolean;
  isMixed: boolean;
  tasks: number;
  /** No round of mixed faults begins after this many minutes. Undefined: the number of tasks decides. */
  minutes: number | undefined;
  replicas: 1 | 3;
  size: ClusterSize;
  classes: readonly FaultClass[];
  /** Undefined: each class has its own minimum. */
  faultsMin: number | undefined;
  seed: number;
  concurrency: number;
  report: string | undefined;
};

/** Throws an Error of one sentence. */
export function readOptions(args: string[]): CommandOptions {
  const { values } = parseArgs({
    args,
    options: {
      tasks: { type: 'string' },
      minutes: { type: 'string' },
      replicas: { type: 'string', default: '1' },
      nodes: { type: 'string' },
      groups: { type: 'string', default: String(SIZE_DEFAULT.groups) },
      relays: { type: 'string', default: String(SIZE_DEFAULT.relays) },
      ingresses: { type: 'string', default: String(SIZE_DEFAULT.ingresses) },
      faults: { type: 'string' },
      seed: { type: 'string', default: '1' },
      concurrency: { type: 'string', default: '30' },
      class: { type: 'string', multiple: true, default: [] },
      mixed: { type: 'boolean', default: false },
      report: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  // With --mixed, the number of servers determines the replicas.
  const replicas = wholeNumber('--replicas', values.mixed && values.nodes !== undefined ? values.nodes : values.replicas);
  if (replicas !== 1 && replicas !== 3) throw new Error('--replicas must be 1 or 3');
  const size = {
    nodes: wholeNumber('--nodes', values.nodes ?? String(replicas)),
    groups: wholeNumber('--groups', values.groups),
    relays: wholeNumber('--relays', values.relays),
    ingresses: wholeNumber('--ingresses', values.ingresses),
  };
  if (size.nodes < replicas || (replicas === 1 && size.nodes !== 1))
    throw new Error(
      `--nodes must be ${replicas === 1 ? '1 with --replicas 1' : '3 or more with --replicas 3'}, not ${size.nodes}`,
    );
  if (size.relays < 2 || size.relays % 2 !== 0) throw new Error(`--relays must be an even number, not ${size.relays}`);
  if (size.ingresses < 2) throw new Error(`--ingresses must be 2 or more, not ${size.ingresses}`);
  const known = FAULT_CLASSES.filter(faultClass => faultClass.replicas.includes(replicas));
  const missing = values.class.find(name => !known.some(faultClass => faultClass.name === name));
  if (missing !== undefined) throw new Error(`there is no class "${missing}" with --replicas ${replicas}; see --help`);
  const classes = known.filter(({ name }) => values.class.length === 0 || values.class.includes(name));
  if (values.minutes !== undefined && !values.mixed) throw new Error('--minutes needs --mixed');
  const minutes = values.minutes === undefined ? undefined : wholeNumber('--minutes', values.minutes);
  const tasksDefault = minutes !== undefined ? Number.POSITIVE_INFINITY : values.mixed ? 10_000 : 5_000;
  return {
    help: values.help,
    isMixed: values.mixed,
    tasks: values.tasks === undefined ? tasksDefault : wholeNumber('--tasks', values.tasks),
    minutes,
    replicas,
    size,
    classes,
    faultsMin: values.faults === undefined ? undefined : wholeNumber('--faults', values.faults),
    seed: wholeNumber('--seed', values.seed),
    concurrency: wholeNumber('--concurrency', values.concurrency),
    report: values.report,
  };
}

export function helpText(): string {
  const names = FAULT_CLASSES.map(({ name, replicas }) => `                   ${name} (${replicas.join(', ')})`);
  return USAGE.replace('CLASSES', names.join('\n'));
}
