import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { bundle } from './bundle.ts';

/** The user of the process. Kubernetes can only check `runAsNonRoot` against a number. */
export const USER_ID = 65_532;
export const NODE_PATH = '/nodejs/bin/node';
export const APP_FOLDER = '/app';

const ETC = {
  passwd: `hopline:x:${USER_ID}:${USER_ID}::/tmp:/sbin/nologin\n`,
  group: `hopline:x:${USER_ID}:\n`,
  // Without this file glibc does not look into /etc/hosts.
  'nsswitch.conf': 'hosts: files dns\n',
};

/** What changes with Node alone: Node, the libraries it is linked with, and the files that libc reads. */
export function writeBase(folder: string): void {
  copyProgram(process.execPath, join(folder, NODE_PATH));
  for (const library of linkedLibraries(process.execPath)) copyProgram(library, join(folder, library));
  for (const [name, text] of Object.entries(ETC)) write(join(folder, 'etc', name), text);
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  normalize(folder);
  chmodSync(join(folder, 'tmp'), 0o1777);
}

/** What changes with every release: the bundles. */
export async function writeApp(root: string, folder: string): Promise<void> {
  await bundle(root, join(folder, APP_FOLDER));
  normalize(folder);
}

/** A statically linked program and nothing else, such as nats-server. Throws where it needs libraries. */
export function writeProgram(program: string, folder: string, path: string): void {
  const libraries = linkedLibraries(program);
  if (libraries.length > 0) throw new Error(`${program} is linked with ${libraries.join(', ')}; a static build is needed`);
  copyProgram(program, join(folder, path));
  normalize(folder);
}

function linkedLibraries(program: string): string[] {
  let output: string;
  try {
    output = execFileSync('ldd', [program], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    // ldd fails for a static program.
    return [];
  }
  if (/not found/.test(output)) throw new Error(`${program} lacks a library:\n${output}`);
  return [...output.matchAll(/(\/\S+) \(0x/g)].map(match => match[1]!).sort();
}

/** Libraries are linked by a short name that is a symbolic link; the image holds the file under the name that the loader asks for. */
function copyProgram(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(realpathSync(from), to);
  chmodSync(to, 0o755);
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Modes of a checkout depend on the umask of its user. */
function normalize(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isProgram = !entry.isDirectory() && (statSync(path).mode & 0o100) !== 0;
    chmodSync(path, entry.isDirectory() || isProgram ? 0o755 : 0o644);
  }
}
