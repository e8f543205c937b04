import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { licenseTexts, lockedChecksums, sbom } from '../image/bill-of-materials.ts';
import { bundleCommand } from '../image/bundle.ts';

/** The page of `hopline view`, which the binary contains under the name `file-page.html`. */
const PAGE = 'services/console/dist/file-page.html';

/** Why this Node cannot make a binary; undefined if it can. */
export function binaryFault({ platform, arch, config, version } = process): string | undefined {
  const { node_use_lief: writes, single_executable_application: runs } = config.variables as Record<string, unknown>;
  if (platform === 'darwin' && arch === 'x64') return 'Node makes no binaries for Macs with an Intel processor';
  return writes && runs ? undefined : `Node ${version} was built without --build-sea`;
}

/**
 * Makes a single file of the command line for the platform of this machine (this Node with the bundle in it), with its licenses and its
 * bill of materials. The same sources and the same Node give the same bytes. Returns the paths.
 */
export async function makeBinary(root: string, outFolder: string): Promise<[binary: string, licenses: string, sbom: string]> {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const path = join(outFolder, `hopline-${version}-${process.platform}-${process.arch}`);
  const { code, packages } = await bundleCommand(root);
  writeExecutable(root, code, path);
  const licenses = `${path}.LICENSES.txt`;
  const texts = [
    licenseTexts(join(root, 'LICENSE'), packages),
    `node ${process.versions.node}\n\n${readFileSync(nodeLicense(), 'utf8')}`,
  ];
  writeFileSync(licenses, texts.join(`\n${'-'.repeat(80)}\n\n`));
  const checksums = lockedChecksums(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8'));
  const subject = { type: 'application', name: 'hopline', version, node: process.versions.node } as const;
  writeFileSync(`${path}.sbom.cdx.json`, `${JSON.stringify(sbom(subject, packages, checksums), null, 2)}\n`);
  return [path, licenses, `${path}.sbom.cdx.json`];
}

function writeExecutable(root: string, code: string, output: string): void {
  const work = mkdtempSync(join(tmpdir(), 'hopline-binary-'));
  try {
    // A relative path, because the binary contains it.
    const main = 'hopline.mjs';
    writeFileSync(join(work, main), code);
    const assets = { 'file-page.html': join(root, PAGE) };
    // No code cache: two builds of it differ, and so would the checksums.
    const sea = { main, mainFormat: 'module', output, assets, useCodeCache: false, disableExperimentalSEAWarning: true };
    writeFileSync(join(work, 'sea.json'), JSON.stringify(sea));
    execFileSync(process.execPath, ['--build-sea', 'sea.json'], { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
    // The bundle has invalidated the signature of Node, and an Apple processor runs no program without one.
    if (process.platform === 'darwin') execFileSync('codesign', ['--sign', '-', '--force', output], { stdio: 'inherit' });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The license of Node, and those of the libraries with which it is linked. */
function nodeLicense(): string {
  const folder = join(dirname(process.execPath), '..');
  const path = ['LICENSE', 'share/doc/node/LICENSE'].map(file => join(folder, file)).find(existsSync);
  if (path === undefined) throw new Error(`the license of Node is not in ${folder}`);
  return path;
}
