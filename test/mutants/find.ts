import type { Mutant, PackageName } from './mutant.ts';
import { nearestTests } from './nearest-tests.ts';
import type { TreeCopy } from './tree-copy.ts';
import { type Failure, runCampaign, runSeeds, runTests } from './verifiers.ts';

/** The contract of the log: on the log in memory, on nats-server, and on the double of it. */
const CONTRACT: readonly string[] = [
  'test/integration/log/memory.test.ts',
  'test/nats-double/contract.test.ts',
  'test/integration/log/jetstream.test.ts',
];

type VerifierName = 'unit tests' | 'contract suite' | 'tests with nats-server' | 'simulator' | 'campaign';

/** `seconds`: since the first verifier began. */
export type Finding = { by: VerifierName; what: string; seconds: number };

type FindOptions = {
  seeds: number;
  /** Runs the simulator even if a test has found the mutant. */
  alwaysSimulates: boolean;
  runsCampaign: boolean;
};

type Verifier = {
  name: VerifierName;
  run: (root: string) => Promise<Failure | undefined>;
  /** The part of the run that failed. It must pass on the tree without the mutant. */
  again: (root: string, failure: Failure) => Promise<Failure | undefined>;
};

/** Plants a mutant in the copy and runs the verifiers, the cheapest first. Returns what each that ran has found, first to last. */
export async function findMutant(copy: TreeCopy, of: PackageName, mutant: Mutant, options: FindOptions): Promise<Finding[]> {
  const findings: Finding[] = [];
  const startedMs = performance.now();
  for (const verifier of verifiersOf(copy.root, of, mutant, options)) {
    if (findings.length > 0 && !(options.alwaysSimulates && verifier.name === 'simulator')) continue;
    copy.plant(mutant.edits);
    const failure = await verifier.run(copy.root);
    const seconds = (performance.now() - startedMs) / 1_000;
    copy.restore(mutant.edits);
    if (failure === undefined) continue;
    const without = await verifier.again(copy.root, failure);
    if (without !== undefined) {
      const { what, why } = without;
      throw new Error([`${mutant.name}: the ${verifier.name} fail without it, too: ${what}`, why].filter(Boolean).join(': '));
    }
    findings.push({ by: verifier.name, what: failure.what, seconds });
  }
  return findings;
}

function verifiersOf(root: string, of: PackageName, mutant: Mutant, { seeds, runsCampaign }: FindOptions): Verifier[] {
  const tests = (name: VerifierName, paths: readonly string[]): Verifier => {
    const run = (folder: string) => runTests(folder, paths);
    return { name, run, again: run };
  };
  const others = nearestTests(root, of, mutant.edits).filter(path => !mutant.tests.includes(path));
  const verifiers = [tests('unit tests', mutant.tests), tests('unit tests', others)];
  verifiers.push(tests('tests with nats-server', mutant.withServer ?? []));
  if (of === 'log' || of === 'log-jetstream') verifiers.push(tests('contract suite', CONTRACT));
  if (seeds > 0) {
    const log = of === 'log-jetstream' ? 'nats' : 'memory';
    const again = (folder: string, failure: Failure) =>
      runSeeds(folder, { from: (failure as { seed?: number }).seed ?? 1, seeds: 1, log });
    verifiers.push({ name: 'simulator', run: folder => runSeeds(folder, { from: 1, seeds, log }), again });
  }
  if (runsCampaign) verifiers.push({ name: 'campaign', run: runCampaign, again: runCampaign });
  return verifiers;
}
