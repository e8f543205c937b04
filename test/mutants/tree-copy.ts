import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { editedSource, type SourceEdit } from '../support/source-edits.ts';

/**
 * A copy of the checkout in a temporary folder, which disposal removes. It shares the installed packages: only the links in the folders of the workspace
 * are copied, so that they name the copies of the workspace's packages.
 */
export class TreeCopy implements Disposable {
  readonly root: string;
  readonly #from: string;

  constructor(from: string) {
    this.#from = from;
    this.root = mkdtempSync(join(tmpdir(), 'hopline-mutant-'));
    const folders = new Set<string>();
    for (const path of sourcesIn(from)) {
      const folder = dirname(path);
      if (!folders.has(folder)) mkdirSync(join(this.root, folder), { recursive: true });
      folders.add(folder);
      copyFileSync(join(from, path), join(this.root, path));
    }
    for (const folder of folders) {
      const modules = join(folder, 'node_modules');
      if (folder === '.' || !existsSync(join(from, modules))) continue;
      cpSync(join(from, modules), join(this.root, modules), { recursive: true, verbatimSymlinks: true });
    }
    if (existsSync(join(from, 'node_modules'))) symlinkSync(join(from, 'node_modules'), join(this.root, 'node_modules'));
  }

  /** Throws if an edit does not apply. */
  plant(edits: readonly SourceEdit[]): void {
    for (const [file, ofFile] of Map.groupBy(edits, ({ file }) => file)) {
      const source = readFileSync(join(this.#from, file), 'utf8');
      writeFileSync(join(this.root, file), editedSource(source, ofFile));
    }
  }

  /** Takes the edits back. */
  restore(edits: readonly SourceEdit[]): void {
    for (const { file } of edits) copyFileSync(join(this.#from, file), join(this.root, file));
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Paths of the files of a checkout that git tracks or would track. */
function sourcesIn(root: string): string[] {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const;
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], options);
  return listed.split('\0').filter(path => path !== '' && existsSync(join(root, path)));
}
