import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { npmPack, type Tarball } from './npm-pack.ts';

/** Packages of the page and of its tools; their versions are those of this repository. */
const PAGE = ['@ai-sdk/react', 'ai', 'react', 'react-dom'];
const TOOLS = ['@types/node', '@types/react', '@types/react-dom', 'typescript', 'vite'];
/** The first Node that runs the TypeScript of the agent's test. `npm run dev` brings its own Node where this one is older. */
const NODE_MIN = '>=22.18';

/** The package `create-hopline`: what `npm create` runs, and the files that it copies. It has no dependencies. */
export function packCreateHopline(root: string, outFolder: string): Tarball {
  const staging = mkdtempSync(join(tmpdir(), 'hopline-create-'));
  try {
    cpSync(join(root, 'infra/create-hopline'), staging, { recursive: true });
    cpSync(join(root, 'LICENSE'), join(staging, 'LICENSE'));
    const { version, license } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const manifest = {
      name: 'create-hopline',
      version,
      description: 'Makes the folder of an agent for Hopline, with a page that shows it',
      keywords: ['a2a', 'agent2agent', 'create'],
      license,
      type: 'module',
      engines: { node: '>=20' },
      bin: { 'create-hopline': './create.mjs' },
    };
    writeFileSync(join(staging, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    writeFileSync(join(staging, 'template/package.json'), `${JSON.stringify(projectOf(root, version), null, 2)}\n`);
    return npmPack([staging], outFolder)[0]!;
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** package.json of a new project. */
function projectOf(root: string, version: string): object {
  const { catalog } = parse(readFileSync(join(root, 'pnpm-workspace.yaml'), 'utf8')) as { catalog: Record<string, string> };
  const pinned = (names: string[]) => Object.fromEntries(names.map(name => [name, catalog[name]!]));
  const ours = Object.fromEntries(['@hopline/agent', 'hopline'].map(name => [name, version]));
  return {
    name: 'NAME',
    version: '0.0.0',
    private: true,
    type: 'module',
    engines: { node: NODE_MIN },
    scripts: {
      dev: 'hopline dev --agents agents.json --origin http://localhost:5173',
      ask: 'hopline ask --agent NAME Paris',
      page: 'vite page --port 5173 --strictPort',
      // Names its file, because a Node without TypeScript would find no tests and pass.
      test: 'node --test agent.test.ts',
      check: 'tsc',
      build: 'vite build page',
    },
    dependencies: pinned(PAGE),
    devDependencies: { ...ours, ...pinned(TOOLS) },
  };
}
