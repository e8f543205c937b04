import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type ImageArchive, type ImageConfig, writeImageArchive, writeOciArchive } from './archive.ts';
import { ARCHITECTURES, type Architecture } from './elf.ts';
import { HOST_ARCHITECTURE } from './libraries.ts';
import { versionHint } from './nats-version.ts';
import { RUN, writeApp, writeBase, writeProgram } from './rootfs.ts';

const USAGE = `npm run image -- [--archive FILE.tar] [--oci FILE.tar] [--sbom FILE.json] [--nats FILE.tar] [--rootfs DIR] [--platform linux/amd64|linux/arm64]

  --archive FILE.tar  the image of all services, as a docker-archive
  --oci FILE.tar      the same image as an OCI archive, for registries
  --sbom FILE.json    its bill of materials (CycloneDX)
  --nats FILE.tar     an image of the nats-server that the tests use, as a docker-archive for this machine's architecture
  --rootfs DIR        the files of the image in a folder; the Dockerfile uses it
  --platform NAME     linux/amd64 or linux/arm64; default: this machine's. The other one needs Debian's apt-get

Load an archive with \`docker load\`, \`kind load image-archive\` or \`ctr images import\`.`;

const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
const PACKAGE = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      archive: { type: 'string' },
      oci: { type: 'string' },
      sbom: { type: 'string' },
      nats: { type: 'string' },
      rootfs: { type: 'string' },
      platform: { type: 'string', default: `linux/${HOST_ARCHITECTURE}` },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const { archive, oci, sbom, nats, rootfs, platform } = values;
  if (values.help) return console.log(USAGE);
  if ([archive, oci, sbom, nats, rootfs].every(output => output === undefined)) throw new Error(`name an output.\n\n${USAGE}`);
  if (process.platform !== 'linux') {
    throw new Error('an image can be built only on Linux; elsewhere use `docker build -f infra/docker/Dockerfile .`');
  }
  const architecture = ARCHITECTURES.find(one => platform === `linux/${one}`);
  if (architecture === undefined) throw new Error(`--platform ${platform}: use linux/amd64 or linux/arm64`);
  if (nats !== undefined && architecture !== HOST_ARCHITECTURE) {
    throw new Error(`--nats: the nats-server of the tests is built only for linux/${HOST_ARCHITECTURE}; remove --platform`);
  }
  const path = (given: string) => resolve(process.env.INIT_CWD ?? process.cwd(), given);
  if (rootfs !== undefined) {
    await inTemporaryFolder(async folder => writeBase(path(rootfs), pinnedNode(), architecture, folder));
    await writeApp(ROOT, path(rootfs));
  }
  const given = (output: string | undefined) => (output === undefined ? undefined : path(output));
  const outputs = { archive: given(archive), oci: given(oci), sbom: given(sbom) };
  if (Object.values(outputs).some(output => output !== undefined))
    await inTemporaryFolder(folder => serviceImage(outputs, architecture, folder));
  if (nats !== undefined) await inTemporaryFolder(folder => natsImage(path(nats), folder));
}

/** The Node of infra/local/bootstrap/pins.json for the platform. This command may itself run on another version. */
function pinnedNode(): string {
  const path = process.env.HOPLINE_IMAGE_NODE;
  if (!path) throw new Error('HOPLINE_IMAGE_NODE is not set: run this through `npm run image`, on Linux with glibc');
  return path;
}

type Outputs = { archive: string | undefined; oci: string | undefined; sbom: string | undefined };

async function serviceImage({ archive, oci, sbom }: Outputs, architecture: Architecture, folder: string): Promise<void> {
  const layers = [join(folder, 'base'), join(folder, 'app')] as const;
  writeBase(layers[0], pinnedNode(), architecture, join(folder, 'packages'));
  await writeApp(ROOT, layers[1]);
  if (sbom !== undefined) {
    mkdirSync(dirname(sbom), { recursive: true });
    copyFileSync(join(layers[1], 'app/sbom.cdx.json'), sbom);
  }
  const config: ImageConfig = {
    name: `hopline:${PACKAGE.version}`,
    architecture,
    created: commitTime(),
    ...RUN,
    labels: labels('Hopline', PACKAGE.description, PACKAGE.version),
  };
  if (archive !== undefined) report(await writeImageArchive(archive, layers, config), config);
  if (oci !== undefined) report(await writeOciArchive(oci, layers, config), config);
}

async function natsImage(path: string, folder: string): Promise<void> {
  const program = process.env.HOPLINE_NATS_SERVER;
  if (!program) throw new Error('HOPLINE_NATS_SERVER is not set: run this through `npm run image`');
  const version = /v(\d+\.\d+\.\d+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1];
  if (version === undefined) throw new Error(`${program} did not print a version`);
  writeProgram(program, join(folder, 'nats'), '/nats-server');
  const config: ImageConfig = {
    name: `nats:${version}`,
    architecture: HOST_ARCHITECTURE,
    created: commitTime(),
    entrypoint: ['/nats-server'],
    environment: ['PATH=/'],
    ports: ['4222/tcp', '6222/tcp', '8222/tcp'],
    labels: labels('nats-server', 'The NATS server that the tests of Hopline use', version),
  };
  report(await writeImageArchive(path, [join(folder, 'nats')], config), config);
  const hint = versionHint(version);
  if (hint !== undefined) console.log(hint);
}

function report({ path, bytes, compressedBytes, id }: ImageArchive, config: ImageConfig): void {
  console.log(
    `${config.name}  linux/${config.architecture}  ${mb(bytes)} MB, ${mb(compressedBytes)} MB compressed  ${id}  ${path}`,
  );
}

function labels(title: string, description: string, version: string): Record<string, string> {
  const prefix = 'org.opencontainers.image';
  return {
    [`${prefix}.title`]: title,
    [`${prefix}.description`]: description,
    [`${prefix}.version`]: version,
    [`${prefix}.revision`]: git('rev-parse', 'HEAD'),
    [`${prefix}.licenses`]: PACKAGE.license,
  };
}

function commitTime(): Date {
  return new Date(Number(git('log', '-1', '--format=%ct')) * 1000);
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).trim();
}

async function inTemporaryFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'hopline-image-'));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function mb(bytes: number): string {
  return (bytes / 1e6).toFixed(1);
}

try {
  await main();
} catch (error) {
  console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
