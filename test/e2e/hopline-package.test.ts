import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { packHopline } from '../../infra/release/hopline-package.ts';
import { lowestNode, NO_LOWEST_NODE } from '../support/lowest-node.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const run = promisify(execFile);
const START_MS_MAX = 180_000;
const AGENT = `import { defineAgent } from '@hopline/agent';
export default defineAgent({ name: 'echo', description: 'Repeats', skills: ['repeat'], async *run(turn) { yield turn.text; } });`;

/** An empty folder of a stranger, with the package as npm installs it without a registry. */
let folder: string;
const running = new Set<ChildProcess>();

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hopline-stranger-'));
  const { path } = await packHopline(ROOT, folder);
  writeFileSync(join(folder, 'package.json'), '{"name":"stranger","private":true}');
  await run('npm', ['install', '--offline', '--no-audit', '--no-fund', path], { cwd: folder });
});

after(async () => {
  for (const child of running) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

/** The environment of a user whose `node` is `node`, without what `npm test` sets for the scripts of this repository. */
function environmentOf(node = process.execPath): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_|^INIT_CWD$|^NODE_(OPTIONS|TEST)/i.test(name));
  return { ...Object.fromEntries(own), PATH: [dirname(node), process.env.PATH].join(delimiter) };
}

async function hopline(args: string[], node?: string): Promise<string> {
  const command = join(folder, 'node_modules/.bin/hopline');
  const { stdout } = await run(command, args, { cwd: folder, env: environmentOf(node), timeout: START_MS_MAX });
  return stdout;
}

/** Starts a cluster in the folder. Resolves with what it printed when it matches `until`. */
async function dev(args: string[], until: RegExp): Promise<{ printed: string; stop: () => Promise<string> }> {
  const command = join(folder, 'node_modules/.bin/hopline');
  const child = spawn(command, ['dev', '--port', '0', ...args], {
    cwd: folder,
    env: environmentOf(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let printed = '';
  const ended = once(child, 'exit').then(() => running.delete(child));
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
      if (until.test(printed)) resolve();
    });
  void ended.then(() => reject(new Error(`the cluster ended: ${printed}`)));
  await ready;
  const stop = async () => {
    child.kill('SIGINT');
    await ended;
    return printed;
  };
  return { printed, stop };
}

test('hopline dev in an empty folder starts a cluster whose demo answers, and leaves nothing running', {
  timeout: START_MS_MAX,
}, async () => {
  const cluster = await dev([], /Ctrl-C drains and stops everything/);
  assert.match(cluster.printed, /^Open http:\/\/127\.0\.0\.1:\d+\/$/m);
  assert.match(cluster.printed, /\[DIR\] a2a-server[\s\S]*byte for byte[\s\S]*task [0-9a-f-]+ completed/);
  assert.ok(existsSync(join(folder, '.hopline/run.json')));
  const [, url] = /Hopline is up: (\S+)/.exec(cluster.printed)!;
  assert.match(await hopline(['ask', '--url', url!, 'hello']), /I am the guide of this demo/);
  assert.match(await hopline(['status']), /relay-1/);
  const page = await fetch(/Open (\S+)/.exec(cluster.printed)![1]!);
  assert.match(await page.text(), /<!doctype html>/i);
  assert.match(await cluster.stop(), /Stopped; nothing is left running/);
});

test('an agent of the folder runs in the cluster: from an agents file, and by hopline agent', {
  timeout: START_MS_MAX,
}, async t => {
  writeFileSync(join(folder, 'echo.mjs'), AGENT);
  writeFileSync(join(folder, 'other.mjs'), AGENT.replace("'echo'", "'other'"));
  const agents = { agents: [{ name: 'echo', adapter: 'module', path: './echo.mjs' }] };
  writeFileSync(join(folder, 'agents.json'), JSON.stringify(agents));
  const cluster = await dev(['--agents', 'agents.json'], /agent echo ✓[\s\S]*Ctrl-C drains/);
  t.after(cluster.stop);
  const [, url] = /Hopline is up: (\S+)/.exec(cluster.printed)!;
  assert.equal((await hopline(['ask', '--url', url!, 'a b'])).trim(), 'a b');
  const command = join(folder, 'node_modules/.bin/hopline');
  const own = spawn(command, ['agent', 'other.mjs'], { cwd: folder, env: environmentOf(), stdio: ['ignore', 'pipe', 'inherit'] });
  running.add(own);
  const { promise: registered, resolve } = Promise.withResolvers<void>();
  let output = '';
  own.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (/other/.test(output)) resolve();
  });
  await registered;
  assert.match(await hopline(['ask', '--url', url!, '--agent', 'other', 'c d']), /c d/);
  own.kill('SIGINT');
  await once(own, 'exit');
});

test('the command runs on the lowest Node, with the Node that it fetches', { timeout: START_MS_MAX }, async t => {
  const lowest = await lowestNode();
  if (lowest === undefined) return t.skip(NO_LOWEST_NODE);
  assert.match(await hopline(['--version'], lowest), /^\d+\.\d+\.\d+\n$/);
  assert.match(await hopline(['dev', '--help'], lowest), /^hopline dev \[options\]/);
});
