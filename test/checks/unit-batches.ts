import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A process of its own costs about half a second, mostly for loading the modules that the files of a package share. */
const TOGETHER = /^(?:packages|services)\/[^/]+/;
/** Code that acts on the whole process of its file, or measures it: hooks of every test, global providers of OpenTelemetry, counts of work. */
const OF_ITS_PROCESS = /^(?:before|after)Each\(|setGlobal|startTelemetry\(|counted-work\.ts|getActiveResourcesInfo/m;

/** Files of one process. The tests of more files would wait one after the other for longer than the rest of a quick run takes. */
const FILES_MAX = 12;

export type Batches = Disposable & {
  /** Paths to run, each as one process, in the order of the files: a test file, or a module that imports the files of a package. */
  paths: string[];
  /** How a list shows one of the paths: relative to the root, e.g. "packages/task (6 files)", or "packages/task (2 of 3)". */
  nameOf(path: string): string;
};

/** Puts the files of each package together. Writes the modules that import them to a temporary folder, which disposal removes. */
export function batchesOf(root: string, files: readonly string[]): Batches {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-tests-'));
  const names = new Map<string, string>();
  const paths = [...Map.groupBy(files, file => batchOf(root, file))].flatMap(([batch, together]) => {
    if (together.length === 1) return together;
    const parts = partsOf(together);
    return parts.map((part, index) => {
      const path = join(folder, `${batch.replaceAll('/', '-')}-${index + 1}.mjs`);
      writeFileSync(path, part.map(file => `import ${JSON.stringify(pathToFileURL(file))};\n`).join(''));
      names.set(path, `${batch} (${parts.length === 1 ? `${part.length} files` : `${index + 1} of ${parts.length}`})`);
      return path;
    });
  });
  return {
    paths,
    nameOf: path => names.get(path) ?? relative(root, path),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** The package of a file, or the path of a file that needs a process of its own. */
export function batchOf(root: string, file: string): string {
  const path = relative(root, file);
  const [folder] = TOGETHER.exec(path) ?? [];
  return folder === undefined || OF_ITS_PROCESS.test(readFileSync(file, 'utf8')) ? path : folder;
}

/** Parts of nearly equal length, in order. */
function partsOf(files: readonly string[]): string[][] {
  const length = Math.ceil(files.length / Math.ceil(files.length / FILES_MAX));
  return Array.from({ length: Math.ceil(files.length / length) }, (_, index) =>
    files.slice(index * length, (index + 1) * length),
  );
}
