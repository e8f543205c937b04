import { globSync, statSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';

/** Tests without a broker are next to the code, tests with one in `test/`; tests that fill a whole Kubernetes cluster run separately. */
const UNIT = [
  'packages/**/*.test.ts',
  'services/**/*.test.ts',
  'infra/**/*.test.{ts,mjs}',
  'test/{checks,kit,repo}/**/*.test.ts',
];
const WITH_BROKER = ['test/**/*.test.ts'];
const ON_CLUSTER = ['test/kubernetes/{cluster,upgrade}.test.ts'];
/** Unit tests that start clusters, install packages, build images, need a tool of Prometheus, or take 15 seconds or more. */
const NOT_QUICK = [
  'infra/{image,nats,observe,release}/**/*.test.ts',
  'infra/local/launcher/{main,nats-users}.test.ts',
  // Starts nats-server and a cluster in one process, to count the files that execute.
  'test/repo/token-path.test.ts',
  // These start processes, one after the other, for 20 seconds.
  'packages/lifecycle/src/run-service.test.ts',
  'packages/telemetry/src/start-telemetry.test.ts',
  'packages/cli/src/operate/top.test.ts',
  // These fill a log several times, write thousands of frames, or wait for time limits.
  'packages/a2a-grpc/src/artifact-frame.test.ts',
  'packages/a2a-http/src/open-streams.test.ts',
  'services/relay/src/{lost-facts,retention-sweep}.test.ts',
  'services/supervisor/src/gone-agents.test.ts',
];

export type TestFiles = { unit: string[]; withBroker: string[]; onCluster: string[] };

export const NO_FILES: TestFiles = { unit: [], withBroker: [], onCluster: [] };

/** Full paths of the tests that a developer runs while typing, sorted. */
export function findQuickFiles(root: string): string[] {
  const left = new Set(find(root, NOT_QUICK));
  return find(root, UNIT).filter(file => !left.has(file));
}

/**
 * Full paths of the test files of the checkout, sorted. `paths` (files or folders, relative to `base`) select some of them.
 * Throws an Error for a path that selects nothing.
 */
export function findTestFiles(root: string, paths: string[], base: string): TestFiles {
  const onCluster = find(root, ON_CLUSTER);
  const unit = find(root, UNIT);
  const withBroker = find(root, WITH_BROKER).filter(file => !onCluster.includes(file) && !unit.includes(file));
  const all = { unit, withBroker, onCluster };
  if (paths.length === 0) return all;
  const selected = paths.map(path => resolve(base, path));
  for (const [index, path] of selected.entries()) {
    if (
      !Object.values(all)
        .flat()
        .some(file => isWithin(file, path))
    )
      throw new Error(`no test files in ${paths[index]}`);
  }
  const chosen = (files: string[]) => files.filter(file => selected.some(path => isWithin(file, path)));
  return { unit: chosen(all.unit), withBroker: chosen(all.withBroker), onCluster: chosen(all.onCluster) };
}

/** A template is tested in the folder that is made from it: test/e2e/tutorial.ts. */
const NO_TESTS = ['node_modules', 'template'];

function find(root: string, patterns: string[]): string[] {
  const exclude = (name: string) => name.split(sep).some(part => NO_TESTS.includes(part));
  return globSync(patterns, { cwd: root, exclude })
    .map(path => resolve(root, path))
    .filter(path => statSync(path).isFile())
    .sort();
}

function isWithin(file: string, path: string): boolean {
  const rest = relative(path, file);
  return rest === '' || !rest.startsWith('..');
}
