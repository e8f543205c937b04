import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { LONG_FILES } from './long-files.ts';

/** A process of its own costs about half a second, mostly for loading the modules that the files of a package share. */
const PACKAGE = /^(?:packages|services)\/[^/]+/;
/** Code that affects or measures the whole process of its file: global providers of OpenTelemetry, variables, memory. */
const OF_ITS_PROCESS =
  /setGlobal|startTelemetry\(|getActiveResourcesInfo|memoryUsage|cpuUsage|process\.env\.\w+ \??\??= |delete process\.env|process\.chdir/;

/** A test that counts blocks of the sources. It needs a process in which V8 counts from the start, and can share it with other such tests. */
const COUNTS_WORK = /counted-work\.ts/;
const COUNTS = 'counts of work';

/** A test that shares the cluster of its process with other files, and the module that ends this cluster. */
const OF_SHARED_CLUSTER = /\bCluster\.shared\(/;
const SHARED_CLUSTER = 'test/support/cluster/cluster.ts';
const ON_ONE_CLUSTER = ' on one cluster';

/** Files of one process. The tests of more files would wait one after the other for longer than the rest of a quick run takes. */
const FILES_MAX = 12;
/**
 * As FILES_MAX, for tests with a broker: most of these files start a cluster, and their processes are what fills both cores to the end of a run.
 */
const FILES_WITH_BROKER_MAX = 4;
/** Like FILES_MAX, for files that share a cluster, because starting it costs as much as one of these files. */
const FILES_OF_CLUSTER_MAX = 12;

export type Batches = Disposable & {
  /** Paths to run, each in a process of its own, in the order of the files: a test file, or a module that imports several. */
  paths: string[];
  /** How a list shows one of the paths: relative to the root, e.g. "packages/task (6 files)", "packages/cli (2 of 3)", or "packages/events to packages/fold (6 files)". */
  nameOf(path: string): string;
};

/**
 * Puts the files of each package, and of each other folder, together. Writes the modules that import them to a temporary folder, which disposal
 * removes. Each file becomes a suite, so that its hooks run before and after its own tests only.
 */
export function batchesOf(root: string, files: readonly string[]): Batches {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-tests-'));
  const names = new Map<string, string>();
  const groups = [...Map.groupBy(files, file => batchOf(root, file))];
  // A process with a cluster for several files is among the longest of a run.
  const ordered = [
    ...groups.filter(([batch]) => isOnOneCluster(batch)),
    ...joined(groups.filter(([batch]) => !isOnOneCluster(batch))),
  ];
  const paths = ordered.flatMap(([batch, together]) => {
    const shares = isOnOneCluster(batch);
    if (together.length === 1 && !shares) return together;
    const parts = partsOf(together, filesMaxOf(batch));
    return parts.map((part, index) => {
      const path = join(folder, `${batch.replaceAll(/[^\w-]+/g, '-')}-${index + 1}.mjs`);
      const suites = part.map(file => suiteOf(root, file)).join('');
      writeFileSync(path, `import { suite } from 'node:test';\n${shares ? endOfSharedCluster(root) : ''}${suites}`);
      const place = parts.length > 1 ? ` (${index + 1} of ${parts.length})` : part.length > 1 ? ` (${part.length} files)` : '';
      names.set(path, `${batch}${place}`);
      return path;
    });
  });
  return {
    paths,
    nameOf: path => names.get(path) ?? relative(root, path),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The package or folder of a file, or the path of a file that needs a process of its own. */
export function batchOf(root: string, file: string): string {
  const path = relative(root, file);
  const text = readFileSync(file, 'utf8');
  const hasOwnProcess = LONG_FILES.some(long => long.path === path) || OF_ITS_PROCESS.test(text);
  if (OF_SHARED_CLUSTER.test(text)) return `${hasOwnProcess ? path : dirname(path)}${ON_ONE_CLUSTER}`;
  // A long file would make its process the longest of the run.
  if (hasOwnProcess) return path;
  if (COUNTS_WORK.test(text)) return COUNTS;
  return PACKAGE.exec(path)?.[0] ?? dirname(path);
}

type Group = [batch: string, files: string[]];

/** Joins neighboring folders that together have no more files than a process may have. */
function joined(groups: readonly Group[]): Group[] {
  const result: { first: string; last: string; files: string[] }[] = [];
  for (const [batch, files] of groups) {
    const before = isFolder(batch)
      ? result.findLast(({ first }) => isFolder(first) && hasBroker(first) === hasBroker(batch))
      : undefined;
    if (before !== undefined && before.files.length + files.length <= filesMaxOf(batch)) {
      before.last = batch;
      before.files.push(...files);
    } else result.push({ first: batch, last: batch, files: [...files] });
  }
  return result.map(({ first, last, files }) => [first === last ? first : `${first} to ${last}`, files]);
}

/** Other batches are a file, or files that need something from their process. */
function isFolder(batch: string): boolean {
  return batch !== COUNTS && !/\.test\.(?:ts|mjs)$/.test(batch);
}

function filesMaxOf(batch: string): number {
  if (isOnOneCluster(batch)) return FILES_OF_CLUSTER_MAX;
  return hasBroker(batch) ? FILES_WITH_BROKER_MAX : FILES_MAX;
}

function isOnOneCluster(batch: string): boolean {
  return batch.endsWith(ON_ONE_CLUSTER);
}

function hasBroker(folder: string): boolean {
  return /^test\/(?!checks|kit|repo)/.test(folder);
}

/** Lines of a module of suites that end the shared cluster after the last of them. */
function endOfSharedCluster(root: string): string {
  const module = JSON.stringify(pathToFileURL(join(root, SHARED_CLUSTER)));
  return `import { after } from 'node:test';\nimport { stopSharedClusters } from ${module};\nafter(stopSharedClusters);\n`;
}

function suiteOf(root: string, file: string): string {
  return `suite(${JSON.stringify(relative(root, file))}, async () => { await import(${JSON.stringify(pathToFileURL(file))}); });\n`;
}

/** Parts of nearly equal length, in order. */
function partsOf(files: readonly string[], filesMax: number): string[][] {
  const length = Math.ceil(files.length / Math.ceil(files.length / filesMax));
  return Array.from({ length: Math.ceil(files.length / length) }, (_, index) =>
    files.slice(index * length, (index + 1) * length),
  );
}
