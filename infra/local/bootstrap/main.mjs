import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stopCommands } from './command.mjs';
import { ensureConsolePage } from './console-page.mjs';
import { handOver } from './hand-over.mjs';
import { machinePlatform, npmCommand, requireGit } from './machine.mjs';
import { ensureNatsServer } from './nats-server.mjs';
import { npmProgram } from './npm-package.mjs';
import { createProgress } from './progress.mjs';
import { SetupError } from './setup-error.mjs';
import { setupKey } from './setup-stamp.mjs';
import { toolCacheFolder } from './tool-cache.mjs';
import { ensureNode, ensurePnpm, imagePlatform, requireRunning } from './tools.mjs';
import { ensurePackages } from './workspace.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const ENTRY_POINTS = {
  start: 'infra/local/launcher/main.ts',
  test: 'test/checks/main.ts',
  bench: 'test/bench/main.ts',
  capacity: 'test/bench/capacity/main.ts',
  observe: 'infra/observe/main.ts',
  simulate: 'test/simulator/main.ts',
  mutants: 'test/mutants/main.ts',
  faults: 'test/faults/campaign/main.ts',
  fuzz: 'test/fuzz/main.ts',
  soak: 'test/soak/main.ts',
  traffic: 'test/kubernetes/traffic/main.ts',
  tck: 'test/conformance/tck.ts',
  hopline: 'packages/cli/src/main.ts',
  image: 'infra/image/main.ts',
  pack: 'infra/release/main.ts',
  release: 'infra/release/release.ts',
  'dry-run': 'infra/release/dry-run.ts',
};
const HELP = {
  start: new URL('../launcher/help.txt', import.meta.url),
  test: new URL('../../../test/checks/help.txt', import.meta.url),
};

/**
 * `<start|test|bench|capacity|simulate|mutants|faults|fuzz|soak|traffic|tck|hopline> [args]`: installs the tools that this checkout needs, then runs the command.
 * @param {string[]} argv
 */
export async function main([verb, ...args]) {
  try {
    process.exitCode = await runVerb(verb, args);
  } catch (error) {
    process.exitCode = 1;
    stopCommands();
    console.error(`hopline: ${error instanceof SetupError ? error.message : `set-up failed: ${error.message}`}`);
    // A parallel step may still hold timers and pipes.
    process.exit();
  }
}

async function runVerb(verb, args) {
  if (verb === 'release' && args[0] === '--dry-run') return runVerb('dry-run', args.slice(1));
  const entryPoint = Object.hasOwn(ENTRY_POINTS, verb) ? ENTRY_POINTS[verb] : undefined;
  if (!entryPoint)
    throw new SetupError(
      'unknown command; use one of `npm start`, `npm test`, `npm run bench`, `npm run capacity`, `npm run observe`, `npm run simulate`, `npm run mutants`, `npm run faults`, `npm run fuzz`, `npm run soak`, `npm run traffic`, `npm run tck -- PATH`, `npm run -s hopline -- ask "hello"`, `npm run image -- --archive FILE.tar`, `npm run pack -- --output DIR`, `npm run release -- VERSION` or `npm run dry-run`',
    );
  if (HELP[verb] && (args.includes('--help') || args.includes('-h'))) {
    process.stdout.write(readFileSync(HELP[verb], 'utf8'));
    return 0;
  }
  const interrupted = signal => {
    stopCommands();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  const { node, natsServer, imageNode } = await setUp(verb, args, process.env);
  process.off('SIGINT', interrupted).off('SIGTERM', interrupted);

  const env = { ...process.env, PATH: [dirname(node), process.env.PATH].join(delimiter) };
  if (natsServer) env.HOPLINE_NATS_SERVER = natsServer;
  if (imageNode) env.HOPLINE_IMAGE_NODE = imageNode;
  // File arguments are relative to the user's directory; npm runs scripts in the root of the checkout.
  const isClient = verb === 'hopline';
  const cwd = isClient ? (env.INIT_CWD ?? ROOT) : ROOT;
  return handOver(node, [join(ROOT, entryPoint), ...args], { cwd, env, passesInterrupt: !isClient });
}

/** @returns {Promise<{ node: string, natsServer: string | null, imageNode: string | null }>} full paths */
async function setUp(verb, args, env) {
  const pins = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
  const platform = machinePlatform();
  requireGit(env);
  const npm = npmCommand(env);
  const cache = toolCacheFolder(ROOT, env);
  const progress = createProgress(process.stderr);
  const installer = { npm, cache, env, progress };

  const packages = async () => {
    const node = await ensureNode(installer, platform, pins);
    const version = node === process.execPath ? process.versions.node : pins.node.version;
    const pnpm = () => ensurePnpm(installer, platform, pins, node);
    await requireRunning(node);
    await ensurePackages(ROOT, setupKey(ROOT, platform, version), { node, pnpm, env, progress });
    const pageVerbs = ['start', 'test', 'bench', 'capacity', 'image', 'pack', 'dry-run'];
    if (pageVerbs.includes(verb) || (verb === 'hopline' && args[0] === 'view'))
      await ensureConsolePage(ROOT, { node, env, progress });
    return node;
  };
  // Both run in parallel: building nats-server takes the longest.
  const needsServer =
    !['hopline', 'observe', 'pack', 'release', 'dry-run', 'simulate'].includes(verb) &&
    !(verb === 'start' && env.NATS_URL) &&
    !(verb === 'image' && !args.some(arg => arg.startsWith('--nats')));
  const server = needsServer ? ensureNatsServer({ platform, cache, env, pins: pins.natsServer, progress }) : null;
  const imagePin = verb === 'image' ? pins.node.packages[imagePlatform(args, platform)] : undefined;
  const imageNode = imagePin ? npmProgram(installer, 'Node', pins.node.version, imagePin) : null;
  const [node, natsServer, image] = await Promise.all([packages(), server, imageNode]);
  return { node, natsServer, imageNode: image };
}
