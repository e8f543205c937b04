import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { binaryFault, makeBinary } from './binary.ts';
import { nextChangelog } from './changelog.ts';
import { type Chart, packChart } from './chart.ts';
import { packCreateHopline } from './create-hopline-package.ts';
import { writeFormula } from './homebrew-formula.ts';
import { packHopline } from './hopline-package.ts';
import { describe, npmRegistry, type Tarball } from './npm-pack.ts';
import { packAll } from './pack.ts';
import { writePackageSbom } from './package-sbom.ts';
import { startRegistry } from './registry.ts';
import { type Source, signForTrial, verifyTrial } from './trial-signatures.ts';

const USAGE = `npm run dry-run -- [--output DIR] [--port N] [--images] [--no-serve]
Makes the npm packages, the charts, the notes of a release, and the command as a single file for this platform in DIR (dist/release),
signs them with a key of this run, publishes nothing, and serves the packages and charts at 127.0.0.1:N (4873) until Ctrl-C. --images also makes the image for amd64 and arm64 as OCI archives, and its bill of materials; it needs
Linux, and apt-get for the architecture that this machine has not.`;
const ROOT = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
const PORT_DEFAULT = 4873;
const PLATFORMS = ['amd64', 'arm64'];
const CHARTS = ['infra/helm/hopline', 'infra/helm/hopline-agent'];

/** `binary`: path of the single-file binary, if this Node can make one. `signed`: number of signed files. */
type Release = { tarballs: Tarball[]; charts: Chart[]; binary: string | undefined; notes: string; signed: number };

/** Makes everything of a release that this machine can make without an account, in `outFolder`, which is emptied first. */
async function makeRelease(
  root: string,
  outFolder: string,
  { registry, images = false }: { registry: string; images?: boolean },
): Promise<Release> {
  rmSync(outFolder, { recursive: true, force: true });
  mkdirSync(join(outFolder, 'charts'), { recursive: true });
  const hopline = await packHopline(root, outFolder);
  const tarballs = [...packAll(root, outFolder), hopline, packCreateHopline(root, outFolder)];
  const binary = binaryFault() === undefined ? await makeBinary(root, outFolder) : [];
  const time = new Date(git(root, 'log', '-1', '--format=%cI'));
  const charts = await Promise.all(CHARTS.map(folder => packChart(join(root, folder), join(outFolder, 'charts'), time)));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const today = new Date().toISOString().slice(0, 10);
  const { notes } = nextChangelog(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version, today);
  writeFileSync(join(outFolder, 'notes.md'), `${notes}\n`);
  const files = [
    ...(images ? makeImages(root, join(outFolder, 'images'), version) : []),
    ...tarballs.flatMap(tarball => [tarball.path, writePackageSbom(root, tarball)]),
    ...binary,
    writeFormula(outFolder, hopline, { sha256: sha256(hopline.path), registry }),
    ...charts.flatMap(({ path, ociPath }) => [path, ociPath]),
  ];
  const sums = files.map(path => `${sha256(path)}  ${relative(outFolder, path)}\n`);
  const sumsPath = join(outFolder, 'SHA256SUMS');
  writeFileSync(sumsPath, sums.join(''));
  const signed = [...files, join(outFolder, 'notes.md'), sumsPath];
  signForTrial(outFolder, signed, sourceOf(root));
  verifyTrial(outFolder, signed);
  return { tarballs, charts, binary: binary[0], notes, signed: signed.length };
}

function sourceOf(root: string): Source {
  return { commit: git(root, 'rev-parse', 'HEAD'), changed: git(root, 'status', '--porcelain') !== '' };
}

function git(root: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
}

function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex');
}

/** The image for each platform as an OCI archive, with one bill of materials, because the bundles are the same. Returns the paths. */
function makeImages(root: string, outFolder: string, version: string): string[] {
  const sbom = join(outFolder, `hopline-${version}.sbom.cdx.json`);
  const archives = PLATFORMS.map(platform => {
    const path = join(outFolder, `hopline-${version}-linux-${platform}.oci.tar`);
    const more = platform === PLATFORMS[0] ? ['--sbom', sbom] : [];
    const args = ['run', '--silent', 'image', '--', '--platform', `linux/${platform}`, '--oci', path, ...more];
    execFileSync('npm', args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
    return path;
  });
  return [...archives, sbom];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      output: { type: 'string', default: 'dist/release' },
      port: { type: 'string', default: String(PORT_DEFAULT) },
      images: { type: 'boolean', default: false },
      serve: { type: 'boolean', default: true },
      help: { type: 'boolean' },
    },
    allowNegative: true,
  });
  if (values.help) return console.log(USAGE);
  const outFolder = resolve(process.env.INIT_CWD ?? process.cwd(), values.output);
  const registry = npmRegistry();
  const release = await makeRelease(ROOT, outFolder, { ...values, registry });
  for (const tarball of release.tarballs) console.log(describe(tarball));
  for (const { name, version } of release.charts) console.log(`charts/${name}:${version}`);
  console.log(release.binary ?? `No single-file binary: ${binaryFault()}.`);
  console.log(
    `${outFolder}: tarballs with bills of materials, hopline.rb for Homebrew, charts${values.images ? ', images' : ''}, notes.md, SHA256SUMS`,
  );
  console.log(
    `${release.signed} files are signed by a key of this run, and verified: *.sigstore.json, provenance.sigstore.json, dry-run.pub. Only release.yml signs for the identity of the workflow.`,
  );
  if (!values.serve) return;
  const { url } = await startRegistry(release, { port: Number(values.port), upstream: registry });
  console.log(`
Serving them at ${url} until Ctrl-C. In an empty folder:
  npx --registry ${url} hopline dev
  npm create --registry ${url} hopline my-agent
  helm install hopline oci://${new URL(url).host}/charts/hopline --version ${release.charts[0]!.version} --plain-http --set allowUnauthenticated=true`);
}

if (import.meta.main) {
  try {
    await main();
  } catch (error) {
    console.error(`hopline: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
