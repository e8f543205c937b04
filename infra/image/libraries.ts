import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type Architecture, readElf } from './elf.ts';

/** A file of this machine, and its path in the image. */
export type Copied = { from: string; to: string };

export const HOST_ARCHITECTURE: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

const LIBRARY_FOLDER = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const;
/** Debian packages that together contain everything Node is linked with. */
const DEBIAN_PACKAGES = ['libc6', 'libstdc++6', 'libgcc-s1', 'libatomic1'];

/** The libraries of this machine that one of its programs is linked with. */
export function installedLibraries(program: string): Copied[] {
  let output: string;
  try {
    output = execFileSync('ldd', [program], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    // ldd fails for a static program.
    return [];
  }
  if (/not found/.test(output)) throw new Error(`${program} lacks a library:\n${output}`);
  return [...output.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => ({ from: path!, to: path! })).sort(byTarget);
}

/**
 * Unpacks below `folder` the libraries with which a program of another architecture is linked. They are Debian packages from the package
 * sources of this machine, which apt verifies.
 */
export function debianLibraries(program: string, architecture: Architecture, folder: string): Copied[] {
  unpackDebianPackages(architecture, folder);
  const name = LIBRARY_FOLDER[architecture];
  const folders = [`lib/${name}`, `usr/lib/${name}`, 'lib'].map(path => join(folder, path));
  const loader = readElf(program)?.interpreter ?? '';
  const found = new Map<string, Copied>();
  const add = (path: string) => {
    for (const library of [...(readElf(path)?.needed ?? []), basename(loader)]) {
      if (found.has(library)) continue;
      const from = folders.map(one => join(one, library)).find(existsSync);
      if (from === undefined) throw new Error(`${path} needs ${library}, which none of ${DEBIAN_PACKAGES.join(', ')} contains`);
      found.set(library, { from, to: library === basename(loader) ? loader : `/lib/${name}/${library}` });
      add(from);
    }
  };
  add(program);
  return [...found.values()].sort(byTarget);
}

/** Uses package lists of its own, so that this machine's lists stay unchanged. */
function unpackDebianPackages(architecture: Architecture, folder: string): void {
  const state = mkdtempSync(join(tmpdir(), 'hopline-apt-'));
  try {
    const folders = ['State', 'State::Lists', 'Cache', 'Cache::Archives'].map(one => [one, join(state, one)] as const);
    for (const [, path] of folders) mkdirSync(join(path, 'partial'), { recursive: true });
    const options = [
      `APT::Architecture=${architecture}`,
      `APT::Architectures=${architecture}`,
      'APT::Sandbox::User=root',
      ...folders.map(([one, path]) => `Dir::${one}=${path}`),
      'Dir::State::status=/dev/null',
    ].flatMap(option => ['-o', option]);
    const archives = join(state, 'archives');
    mkdirSync(archives);
    const run = (program: string, ...args: string[]) =>
      execFileSync(program, args, { cwd: archives, stdio: ['ignore', 'ignore', 'inherit'] });
    run('apt-get', '-qq', ...options, 'update');
    run('apt-get', '-qq', ...options, 'download', ...DEBIAN_PACKAGES);
    for (const archive of readdirSync(archives)) run('dpkg-deb', '--extract', archive, folder);
  } catch (error) {
    const what = `the libraries of ${architecture} come from Debian's packages, which could not be fetched`;
    throw new Error(
      `${what}; build the image on Debian or Ubuntu, on a machine of that architecture, or with infra/docker/Dockerfile`,
      {
        cause: error,
      },
    );
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

function byTarget(a: Copied, b: Copied): number {
  return a.to < b.to ? -1 : 1;
}
