import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type BuildOptions, build, type Metafile, type Plugin, transform } from 'esbuild';
import { bundledPackages, type ListedPackage, licenseTexts, lockedChecksums, sbom } from './bill-of-materials.ts';

const PINS = JSON.parse(readFileSync(new URL('../local/bootstrap/pins.json', import.meta.url), 'utf8'));

/** Arguments that start a service. Any other argument is a command of the CLI. */
const ROLES = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier', 'console'] as const;

/** CommonJS dependencies call `require` for built-in modules; ES modules have none. */
const REQUIRE =
  "import { createRequire as createRequireOfBundle } from 'node:module'; const require = createRequireOfBundle(import.meta.url);";

/**
 * Loads node:http, node:https and node:crypto with `require`. An import statement reads all of their exports. The getter of `http.WebSocket` loads
 * Node's copy of undici, which takes 90 ms of CPU at every start, and that of `crypto.webcrypto` takes 12.
 */
const REQUIRED_BUILTINS: Plugin = {
  name: 'required-builtins',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(?:node:)?(?:https?|crypto)$/ }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'required-builtins' } : undefined,
    );
    onLoad({ filter: /^/, namespace: 'required-builtins' }, ({ path }) => ({ contents: `module.exports = require('${path}');` }));
  },
};

const TARGET = 'node26';

const DISPATCH = `const [role, ...args] = process.argv.slice(2);
const roles = ${JSON.stringify([...ROLES, 'nats-metrics', 'nats-reload', 'code'])};
if (roles.includes(role)) {
  process.argv = [...process.argv.slice(0, 2), ...args];
  await import('./' + role + '.mjs');
} else await import('./cli.mjs');
`;

/** A module agent may import `@hopline/agent` from any folder, and must get the copy that the sub-agent uses. */
const AGENT_KIT = { name: '@hopline/agent', type: 'module', exports: { '.': './agent.mjs', './test-kit': './test-kit.mjs' } };

/** The sub-agent resolves the program of its hosts as in a checkout. */
const AGENT_CODE = { name: '@hopline/agent-code', type: 'module', exports: { './host': './host.mjs' } };

/**
 * The modules whose code is in the image (services, command line and page), each with the modules that it imports, as paths relative to
 * `root`.
 */
export async function imageModules(root: string): Promise<Map<string, readonly string[]>> {
  const services = await build({ ...serviceBuild(root), outdir: join(root, 'unwritten'), metafile: true, write: false });
  return modulesOf([services.metafile, await pageMetafile(root)]);
}

/** The bundles of `bundleCode` below `folder`, with their licenses and their bill of materials. */
export async function bundle(root: string, folder: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
  const packages = await packagesOf(root, await bundleCode(root, folder, more));
  const checksums = lockedChecksums(readFileSync(join(root, 'pnpm-lock.yaml'), 'utf8'));
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  // The Node that builds the image may have another version.
  const subject = { type: 'application', name: 'hopline', version, node: PINS.node.version } as const;
  writeFileSync(join(folder, 'sbom.cdx.json'), `${JSON.stringify(sbom(subject, packages, checksums), null, 2)}\n`);
  writeFileSync(join(folder, 'LICENSES.txt'), licenseTexts(join(root, 'LICENSE'), packages));
}

/**
 * Bundles every service and the command line into ES modules below `folder`. They share chunks, so that an agent module gets the same
 * classes as the service that runs it. The same sources give the same bytes. `more`: further modules, keyed by the name of their bundle.
 */
export async function bundleCode(root: string, folder: string, more: Readonly<Record<string, string>> = {}): Promise<Metafile> {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const services = await build({ ...serviceBuild(root, more), outdir: folder, metafile: true, write: false });
  for (const { path, text } of services.outputFiles) {
    mkdirSync(dirname(path), { recursive: true });
    const code = await minified(text);
    writeFileSync(path, code, { mode: code.startsWith('#!') ? 0o755 : 0o644 });
  }
  writeFileSync(join(folder, 'hopline.mjs'), DISPATCH);
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ name: 'hopline', version, type: 'module' })}\n`);
  writePackage(folder, AGENT_KIT, { 'agent.mjs': 'agent.mjs', 'test-kit.mjs': 'agent-test-kit.mjs' });
  writePackage(folder, AGENT_CODE, { 'host.mjs': 'code-host.mjs' });
  cpSync(join(root, 'infra/local/demo/guide.jsonl'), join(folder, 'demo/guide.jsonl'));
  cpSync(join(root, 'services/console/dist'), join(folder, 'console-app'), { recursive: true });
  return services.metafile;
}

/** The command line as one file, with the npm packages whose code is in it or in the page. The same sources give the same bytes. */
export async function bundleCommand(root: string): Promise<{ code: string; packages: ListedPackage[] }> {
  const options: BuildOptions = { ...serviceBuild(root), entryPoints: { cli: commandEntry(root) }, splitting: false };
  const command = await build({ ...options, outdir: join(root, 'unwritten'), metafile: true, write: false });
  return { code: await minified(command.outputFiles[0]!.text), packages: await packagesOf(root, command.metafile) };
}

/** The npm packages of a bundle and of the page. */
async function packagesOf(root: string, metafile: Metafile): Promise<ListedPackage[]> {
  return bundledPackages(root, [...modulesOf([metafile, await pageMetafile(root)]).keys()]);
}

async function minified(text: string): Promise<string> {
  const { code } = await transform(compiledAtOnce(text), { minifyWhitespace: true, target: TARGET });
  return code;
}

/**
 * Puts parentheses around the functions in which esbuild wraps CommonJS modules. V8 compiles such a function together with its file, so
 * that it is in Node's code cache. V8 parses any other function twice: when it reads the file, and at the first call.
 */
function compiledAtOnce(text: string): string {
  return text.replace(
    /^(var require_\w+ = __commonJS\(\{\n {2}"[^"\n]+")(\([\w, ]*\)) \{\n([\s\S]*?)^ {2}\}\n\}\);$/gm,
    (_, start: string, parameters: string, body: string) => `${start}: (function${parameters} {\n${body}  })\n});`,
  );
}

const commandEntry = (root: string): string => join(root, 'packages', 'cli', 'src', 'main.ts');

function serviceBuild(root: string, more: Readonly<Record<string, string>> = {}): BuildOptions {
  const kit = join(root, 'packages', 'agent', 'src');
  return {
    absWorkingDir: root,
    entryPoints: {
      ...Object.fromEntries(ROLES.map(role => [role, join(root, 'services', role, 'src', 'main.ts')])),
      'nats-metrics': join(root, 'infra', 'observe', 'serve-nats-metrics.ts'),
      'nats-reload': join(root, 'infra', 'nats', 'reload.ts'),
      cli: commandEntry(root),
      code: join(root, 'packages', 'agent-code', 'src', 'listener', 'main.ts'),
      'code-host': join(root, 'packages', 'agent-code', 'src', 'main.ts'),
      agent: join(kit, 'index.ts'),
      'agent-test-kit': join(kit, 'test-kit.ts'),
      'demo/files-server': join(root, 'infra/local/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'),
      ...more,
    },
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: TARGET,
    // Keeps names, which appear in stack traces and as names of errors.
    minifySyntax: true,
    keepNames: true,
    banner: { js: REQUIRE },
    plugins: [REQUIRED_BUILTINS],
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'warning',
  };
}

/** Results by the root of the checkout. A release needs the same result twice, and computing it takes as long as a bundle. */
const pageMetafiles = new Map<string, Promise<Metafile>>();

function pageMetafile(root: string): Promise<Metafile> {
  const known = pageMetafiles.get(root) ?? buildPageMetafile(root);
  pageMetafiles.set(root, known);
  return known;
}

/** Vite builds the page, and does not report which packages it took. esbuild follows the same imports, including those that Vite finds unused. */
async function buildPageMetafile(root: string): Promise<Metafile> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: [join(root, 'services/console/app/main.tsx')],
    outdir: join(root, 'unwritten'),
    bundle: true,
    splitting: true,
    format: 'esm',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    external: ['node:*'],
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  return metafile;
}

function modulesOf(metafiles: readonly Metafile[]): Map<string, readonly string[]> {
  const modules = new Map<string, readonly string[]>();
  for (const { inputs } of metafiles) {
    for (const [path, { imports }] of Object.entries(inputs)) {
      const paths = imports.filter(one => one.external !== true).map(one => one.path);
      modules.set(path, [...(modules.get(path) ?? []), ...paths]);
    }
  }
  return modules;
}

/** A package below `folder` whose files export what bundles of `folder` do. */
function writePackage(folder: string, manifest: { name: string }, files: Readonly<Record<string, string>>): void {
  const target = join(folder, 'node_modules', manifest.name);
  mkdirSync(target, { recursive: true });
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(manifest)}\n`);
  for (const [file, bundled] of Object.entries(files))
    writeFileSync(join(target, file), `export * from '../../../${bundled}';\n`);
}
