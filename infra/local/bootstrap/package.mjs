import { readFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { stopCommands } from './command.mjs';
import { handOver } from './hand-over.mjs';
import { machinePlatform, npmCommand } from './machine.mjs';
import { ensureNatsServer } from './nats-server.mjs';
import { createProgress } from './progress.mjs';
import { SetupError } from './setup-error.mjs';
import { toolCacheFolder } from './tool-cache.mjs';
import { ensureNode, requireRunning } from './tools.mjs';

/** The package `hopline`, whose bundles lie beside this folder. */
const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

/**
 * `hopline dev [options]` fetches nats-server, and a newer Node where this one is too old, and starts a cluster. Everything else is the command
 * line of Hopline.
 * @param {string[]} argv
 */
async function main(argv) {
  const [verb, ...args] = argv[0] === 'help' && argv[1] === 'dev' ? ['dev', '--help'] : argv;
  try {
    process.exitCode = await (verb === 'dev' ? startCluster(args) : runCommandLine(argv));
  } catch (error) {
    process.exitCode = 1;
    stopCommands();
    console.error(`hopline: ${error instanceof SetupError ? error.message : `set-up failed: ${error.message}`}`);
    process.exit();
  }
}

async function startCluster(args) {
  const needsServer = !process.env.NATS_URL && !args.includes('--help');
  const interrupted = signal => {
    stopCommands();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  const { installer, platform, pins } = setUp();
  const server = needsServer ? ensureNatsServer({ ...installer, platform, pins: pins.natsServer }) : null;
  const [node, natsServer] = await Promise.all([nodeOf(installer, platform, pins), server]);
  process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  const env = { ...process.env, PATH: [dirname(node), process.env.PATH].join(delimiter) };
  if (natsServer) env.HOPLINE_NATS_SERVER = natsServer;
  // npx and npm name the folder of the user in INIT_CWD, and run this command there.
  return await handOver(node, [join(PACKAGE, 'launcher.mjs'), ...args], { cwd: process.cwd(), env, passesInterrupt: true });
}

/** Runs in this process where its Node can, so that no parent process has to forward signals. */
async function runCommandLine(args) {
  const { installer, platform, pins } = setUp();
  const node = await nodeOf(installer, platform, pins);
  const program = join(PACKAGE, 'cli.mjs');
  if (node !== process.execPath)
    return await handOver(node, [program, ...args], { cwd: process.cwd(), env: process.env, passesInterrupt: false });
  process.argv = [node, program, ...args];
  await import(pathToFileURL(program).href);
  return process.exitCode;
}

function setUp() {
  const { env } = process;
  const pins = JSON.parse(readFileSync(new URL('pins.json', import.meta.url), 'utf8'));
  const installer = { npm: npmCommand(env), cache: toolCacheFolder(PACKAGE, env), env, progress: createProgress(process.stderr) };
  return { installer, platform: machinePlatform(), pins };
}

async function nodeOf(installer, platform, pins) {
  const node = await ensureNode(installer, platform, pins);
  await requireRunning(node);
  return node;
}

await main(process.argv.slice(2));
