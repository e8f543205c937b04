import { chmodSync, cpSync, mkdirSync, readdirSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { bundle } from './bundle.ts';
import { type Architecture, readElf } from './elf.ts';
import { debianLibraries, HOST_ARCHITECTURE, installedLibraries } from './libraries.ts';

/** The user of the process. Kubernetes can only check `runAsNonRoot` against a number. */
const USER_ID = 65_532;
const NODE_PATH = '/nodejs/bin/node';
const APP_FOLDER = '/app';

/** How a container of the image runs. The Dockerfile has the same values. */
export const RUN = {
  user: `${USER_ID}:${USER_ID}`,
  workingFolder: APP_FOLDER,
  entrypoint: [NODE_PATH, `${APP_FOLDER}/hopline.mjs`],
  environment: ['PATH=/nodejs/bin', 'NODE_ENV=production', 'HOPLINE_HOST=0.0.0.0', 'HOME=/tmp'],
  ports: ['8000/tcp'],
};

const ETC = {
  passwd: `hopline:x:${USER_ID}:${USER_ID}::/tmp:/sbin/nologin\n`,
  group: `hopline:x:${USER_ID}:\n`,
  // Without this file glibc does not read /etc/hosts.
  'nsswitch.conf': 'hosts: files dns\n',
};

/**
 * The layer that changes only with Node: Node itself, the libraries with which it is linked, and the files that libc reads. `unpacked`: an
 * empty folder for packages with libraries of another architecture.
 */
export function writeBase(folder: string, node: string, architecture: Architecture, unpacked: string): void {
  const found = readElf(node)?.architecture;
  if (found !== architecture) throw new Error(`${node} is a program for ${found ?? 'another system'}, not for ${architecture}`);
  copyProgram(node, join(folder, NODE_PATH));
  const libraries = architecture === HOST_ARCHITECTURE ? installedLibraries(node) : debianLibraries(node, architecture, unpacked);
  for (const { from, to } of libraries) copyProgram(from, join(folder, to));
  for (const [name, text] of Object.entries(ETC)) write(join(folder, 'etc', name), text);
  mkdirSync(join(folder, 'tmp'), { recursive: true });
  normalize(folder);
  chmodSync(join(folder, 'tmp'), 0o1777);
  requireComplete(folder, architecture);
}

/** Throws unless every program and library below `folder` is for this architecture, together with everything it is linked with. */
export function requireComplete(folder: string, architecture: Architecture): void {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile());
  const names = new Set(files.map(({ name }) => name));
  for (const { parentPath, name } of files) {
    const elf = readElf(join(parentPath, name));
    if (elf === undefined) continue;
    if (elf.architecture !== architecture) throw new Error(`${name} is for ${elf.architecture}, not for ${architecture}`);
    const loader = elf.interpreter === undefined ? [] : [basename(elf.interpreter)];
    const missing = [...elf.needed, ...loader].find(library => !names.has(library));
    if (missing !== undefined) throw new Error(`${name} is linked with ${missing}, which is not in the image`);
  }
}

/** The layer that changes with every release: the bundles. */
export async function writeApp(root: string, folder: string): Promise<void> {
  await bundle(root, join(folder, APP_FOLDER));
  normalize(folder);
}

/** The layer of a single statically linked program, such as nats-server. Throws if it needs libraries. */
export function writeProgram(program: string, folder: string, path: string): void {
  const needed = readElf(program)?.needed ?? [];
  if (needed.length > 0) throw new Error(`${program} is linked with ${needed.join(', ')}; a static build is needed`);
  copyProgram(program, join(folder, path));
  normalize(folder);
}

/** Programs refer to libraries by a short name, which is a symbolic link. The image has the file under the name that the loader opens. */
function copyProgram(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(realpathSync(from), to);
  chmodSync(to, 0o755);
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Sets file modes, because file modes in a checkout depend on its user's umask. */
function normalize(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const isProgram = !entry.isDirectory() && (statSync(path).mode & 0o100) !== 0;
    chmodSync(path, entry.isDirectory() || isProgram ? 0o755 : 0o644);
  }
}
