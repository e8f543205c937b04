import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { bundle } from '../image/bundle.ts';
import { npmPack, type Tarball } from './npm-pack.ts';

/** Oldest Node that runs the first lines of the package. They fetch the Node that the bundles need where this one is older. */
const NODE_MIN = '>=20';
/** The files that the demo's agent `files` shows: a part of the repository, in the same folder structure. */
const SHOWN = ['README.md', 'package.json', 'packages/README.md', 'packages/*/README.md', 'docs/README.md', 'docs/guides/*.md'];
/** Packages that the code of agents imports, which bundles cannot contain. */
const BUNDLED = ['@hopline/agent', '@hopline/agent-code'];

/**
 * The package `hopline`: the bundles of the image, the launcher and the command line. `hopline dev` starts a cluster in an empty folder. It has
 * no dependencies, so installing it takes one download.
 */
export async function packHopline(root: string, outFolder: string): Promise<Tarball> {
  const staging = mkdtempSync(join(tmpdir(), 'hopline-package-'));
  try {
    await bundle(root, staging, {
      launcher: join(root, 'infra/local/launcher/main.ts'),
      'demo/guide': join(root, 'infra/local/demo/guide.ts'),
    });
    writeBootstrap(root, staging);
    writeDemo(root, staging);
    writeFileSync(join(staging, 'help.txt'), helpOf(readFileSync(join(root, 'infra/local/launcher/help.txt'), 'utf8')));
    cpSync(join(root, 'LICENSE'), join(staging, 'LICENSE'));
    cpSync(join(root, 'infra/release/hopline-package.md'), join(staging, 'README.md'));
    writeFileSync(join(staging, 'package.json'), `${JSON.stringify(manifestOf(root, staging), null, 2)}\n`);
    return npmPack([staging], outFolder)[0]!;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function manifestOf(root: string, staging: string) {
  const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const name of BUNDLED) {
    const path = join(staging, 'node_modules', name, 'package.json');
    writeFileSync(path, `${JSON.stringify({ version, ...JSON.parse(readFileSync(path, 'utf8')) })}\n`);
  }
  return {
    name: 'hopline',
    version,
    description: 'A whole Hopline cluster on this machine with one command, and the command line of Hopline',
    keywords: ['a2a', 'agent2agent', 'nats', 'jetstream', 'cli'],
    license,
    type: 'module',
    engines: { node: NODE_MIN },
    bin: { hopline: './bin.mjs' },
    dependencies: Object.fromEntries(BUNDLED.map(name => [name, version])),
    bundleDependencies: BUNDLED,
  };
}

/** The set-up of a checkout, without what only a checkout needs. */
function writeBootstrap(root: string, staging: string): void {
  const from = join(root, 'infra/local/bootstrap');
  const files = globSync('*.{mjs,json}', {
    cwd: from,
    exclude: ['*.test.mjs', 'main.mjs', 'console-page.mjs', 'workspace.mjs', 'setup-stamp.mjs'],
  });
  mkdirSync(join(staging, 'bootstrap'));
  for (const file of files) cpSync(join(from, file), join(staging, 'bootstrap', file));
  const [check] = readFileSync(join(root, 'infra/local/bootstrap.mjs'), 'utf8').split("import('./bootstrap/main.mjs')");
  writeFileSync(join(staging, 'bin.mjs'), `#!/usr/bin/env node\n${check}import('./bootstrap/package.mjs');\n`, { mode: 0o755 });
}

function writeDemo(root: string, staging: string): void {
  const demo = join(staging, 'demo');
  cpSync(join(root, 'infra/local/demo/question.json'), join(demo, 'question.json'));
  for (const file of globSync(SHOWN, { cwd: root })) {
    mkdirSync(dirname(join(demo, 'files', file)), { recursive: true });
    cpSync(join(root, file), join(demo, 'files', file));
  }
  const { agents } = JSON.parse(readFileSync(join(root, 'infra/local/demo/agents.json'), 'utf8'));
  const [files, guide] = agents;
  files.description = "Reads the guides of Hopline through an MCP server; Node's permission model keeps it from writing.";
  files.args = ['--permission', '--allow-fs-read=..', 'files-server.mjs', 'files'];
  guide.path = 'guide.mjs';
  writeFileSync(join(demo, 'agents.json'), `${JSON.stringify({ agents: [files, guide] }, null, 2)}\n`);
}

/** The help of `npm start`, for the command of the package. */
function helpOf(text: string): string {
  return text
    .replace('npm start -- [options]        starts', 'hopline dev [options]         starts')
    .replaceAll('npm start --', 'hopline dev')
    .replace('default infra/local/demo/agents.json', 'default: two agents of a demo')
    .replace('in the checkout', 'in the current folder');
}
