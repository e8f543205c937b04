import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { Guide } from '../support/guides/guide.ts';
import { lowestNode, NO_LOWEST_NODE } from '../support/lowest-node.ts';
import { type StartedCommand, startCommand } from '../support/started-command.ts';
import { isUnreachable, NPM_UNREACHABLE, type NpmRelease } from './npm-release.ts';

const run = promisify(execFile);
const GUIDE = new Guide('tutorial.md');
const STEP_MS_MAX = 600_000;
const ANSWER = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
  .map(day => `${day} will have ${(35 + 3 * day.length) % 30} degrees in Paris.\n`)
  .join('');

/** An agent that repeats its question. */
const ECHO = `import { defineAgent } from '@hopline/agent';
export default defineAgent({ name: 'echo', description: 'Repeats', skills: ['repeat'], async *run(turn) { yield turn.text; } });`;

const running = new Set<ChildProcess>();

/**
 * The environment of a user, without what `npm test` sets; npm keeps nothing of the previous run, whose packages have the same version.
 */
function environment(more: Record<string, string> = {}): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_|^INIT_CWD$|^NODE_(OPTIONS|TEST)|^HOPLINE_/i.test(name),
  );
  return { ...Object.fromEntries(inherited), npm_config_update_notifier: 'false', HOPLINE_PORT: '0', ...more };
}

async function shell(command: string, cwd: string, more: Record<string, string> = {}): Promise<string> {
  const { stdout } = await run('sh', ['-c', command], { cwd, env: environment(more), timeout: STEP_MS_MAX }).catch(error =>
    assert.fail(`${command}\n${error.stdout}\n${error.stderr}`),
  );
  return stdout;
}

/** Starts a command, and resolves once it has printed text that matches `until`. */
async function start(command: string, cwd: string, until: RegExp, more: Record<string, string> = {}): Promise<StartedCommand> {
  return startCommand(command, until, { program: 'sh', cwd, env: environment(more), running, msMax: STEP_MS_MAX / 3 });
}

/** The address of the cluster that `hopline dev` has started. */
function addressOf(cluster: StartedCommand): string {
  return /Hopline is up: (\S+)/.exec(cluster.printed())?.[1] ?? assert.fail(cluster.printed());
}

/**
 * The tutorial, command by command, as a stranger follows it: in an empty folder, with nothing but the registry of a dry run. Only addresses
 * differ, because other tests have the ports of the page.
 */
export function testTutorial(release: () => NpmRelease): void {
  let folder: string;
  let project: string;
  /** The cluster of the project. */
  let cluster: StartedCommand | undefined;
  let unreachable: string | undefined;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'hopline-tutorial-'));
    project = join(folder, 'forecast');
  });

  after(() => {
    for (const child of running) process.kill(-child.pid!, 'SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  /** The command of the guide that begins with this text, with the addresses of this test. */
  function line(begin: string, task = 'TASK'): string {
    return GUIDE.command(begin).replace('http://127.0.0.1:4873/', release().url).replaceAll('TASK', task);
  }

  const reachable = (t: TestContext) => {
    if (unreachable !== undefined) t.skip(unreachable);
    return unreachable === undefined;
  };

  test('1: npx loads one package and starts a cluster in an empty folder, whose demo answers; it leaves nothing running', {
    timeout: STEP_MS_MAX,
  }, async () => {
    const empty = mkdtempSync(join(folder, 'empty-'));
    const cache = { npm_config_cache: join(folder, 'npm-cache') };
    const cluster = await start(line('npx --yes'), empty, /Ctrl-C drains and stops everything/, cache);
    // Which of the two agents writes first depends on the load of the machine.
    for (const part of [/\[DIR\] a2a-server/, /byte for byte/, /task [0-9a-f-]+ completed/])
      assert.match(cluster.printed(), part);
    const [, page] = /^Open (http:\/\/127\.0\.0\.1:\d+\/)$/m.exec(cluster.printed()) ?? assert.fail(cluster.printed());
    assert.match(await (await fetch(page!)).text(), /<!doctype html>/i);
    assert.ok(existsSync(join(empty, '.hopline/run.json')));
    const [installed] = globSync('npm-cache/_npx/*/', { cwd: folder });
    const { packages } = JSON.parse(readFileSync(join(folder, installed!, 'package-lock.json'), 'utf8'));
    const loaded = Object.entries<{ inBundle?: true }>(packages).filter(([path, { inBundle }]) => path !== '' && !inBundle);
    assert.deepEqual(
      loaded.map(([path]) => path),
      ['node_modules/hopline'],
    );
    // The printed commands, without the variables that npm set for the first one.
    const printed = (words: RegExp) =>
      cluster
        .printed()
        .split('\n')
        .find(one => words.test(one)) ?? assert.fail(cluster.printed());
    assert.match(await shell(printed(/^ {3}\S.* ask /), empty), /byte for byte/);
    assert.match(await shell(printed(/^ {3}\S.* status$/), empty), /relay-1/);
    assert.match(
      await shell(`${printed(/^ {3}\S.* status$/).replace(/status$/, 'what')} 2>&1 || true`, empty),
      /see \/.* --help$/m,
    );
    await cluster.stop();
    assert.match(cluster.printed(), /Stopped; nothing is left running/);
  });

  test('2: npm create makes a project whose test passes, and whose agent is that of the guide', {
    timeout: STEP_MS_MAX,
  }, async t => {
    const cache = { npm_config_cache: join(folder, 'npm-cache') };
    assert.match(await shell(line('npm create'), folder, cache), /forecast\/ is ready/);
    assert.equal(`// agent.ts\n${readFileSync(join(project, 'agent.ts'), 'utf8')}`, GUIDE.file('agent.ts'));
    assert.equal(readFileSync(join(project, '.npmrc'), 'utf8'), `registry=${release().url}\n`);
    assert.equal(line('cd '), 'cd forecast');
    await run('sh', ['-c', line('npm install')], { cwd: project, env: environment(), timeout: STEP_MS_MAX }).catch(error => {
      if (!isUnreachable(error)) throw error;
      unreachable = NPM_UNREACHABLE;
    });
    if (!reachable(t)) return;
    assert.match(await shell(line('npm test'), project), /pass 1\n/);
    await shell('npm run check', project);
  });

  test('3: the page of the project is built', { timeout: STEP_MS_MAX }, async t => {
    if (!reachable(t)) return;
    await shell('npm run build', project);
    assert.match(readFileSync(join(project, 'page/dist/index.html'), 'utf8'), /<title>forecast<\/title>/);
    assert.match(line('npm run page'), /^npm run page$/);
    const page = await start('npx --no vite page --port 0', project, /http:\/\/localhost:\d+\//);
    t.after(page.stop);
    const [url] = page.matched;
    assert.match(await (await fetch(`${url}main.tsx`)).text(), /useChat/);
  });

  test('4 to 6: a killed relay costs no character, and the task is traced, exported, replayed and verified', {
    timeout: STEP_MS_MAX,
  }, async t => {
    if (!reachable(t)) return;
    cluster = await start(line('npm run dev'), project, /agent forecast ✓[\s\S]*Ctrl-C drains/);
    const at = { HOPLINE_URL: addressOf(cluster) };
    const asked = await start(line('npx --no hopline ask'), project, /Tuesday/, at);
    await shell(line('kill -9'), project);
    await asked.ended;
    assert.ok(asked.printed().includes(ANSWER), asked.printed());
    // The answer can end before the cluster has noticed the exit of its process.
    await cluster.prints(/relay-1 .*(?:ended|killed|SIGKILL)/);

    const [task] = (await shell(line('npx --no hopline tasks'), project, at)).trim().split(/\s/);
    assert.match(task!, /^[0-9a-f-]{36}$/);
    assert.match(await shell(line('npx --no hopline trace', task), project, at), /temperature/);
    await shell(line('npx --no hopline export', task), project, at);
    assert.ok(existsSync(join(project, 'forecast.hopline.jsonl')));
    assert.ok((await shell(line('npx --no hopline replay'), project)).includes(ANSWER));
    assert.match(await shell(line('npx --no hopline verify', task), project, at), /1 same, 0 differ/);
  });

  test('an agent of the folder joins the cluster by hopline agent', { timeout: STEP_MS_MAX }, async t => {
    if (!reachable(t)) return;
    assert.ok(cluster);
    t.after(cluster.stop);
    writeFileSync(join(project, 'echo.mjs'), ECHO);
    const agent = await start('node_modules/.bin/hopline agent echo.mjs', project, /echo/);
    const ask = 'node_modules/.bin/hopline ask --agent echo "a b"';
    assert.equal((await shell(ask, project, { HOPLINE_URL: addressOf(cluster) })).trim(), 'a b');
    // Ended before its cluster, because without the cluster it would try to leave for 20 s.
    await agent.stop();
  });

  test('the command runs on the lowest Node, with the Node that it fetches', { timeout: STEP_MS_MAX }, async t => {
    if (!reachable(t)) return;
    const lowest = await lowestNode();
    if (lowest === undefined) return t.skip(NO_LOWEST_NODE);
    const old = { PATH: [dirname(lowest), process.env.PATH].join(delimiter) };
    assert.match(await shell('node_modules/.bin/hopline --version', project, old), /^\d+\.\d+\.\d+\n$/);
    assert.match(await shell('node_modules/.bin/hopline dev --help', project, old), /^hopline dev \[options\]/);
  });

  test('7: helm renders the values of the guide with the chart of the registry', {
    skip: spawnSync('helm', ['version', '--short']).status !== 0 && 'helm is not on PATH',
    timeout: STEP_MS_MAX,
  }, async () => {
    const values = join(folder, 'values.yaml');
    writeFileSync(values, GUIDE.file('values.yaml'));
    const install = GUIDE.blocks.flatMap(({ text }) => text.split('\n')).find(one => one.startsWith('helm install'))!;
    const [, chart] = /^helm install (hopline oci:\S+ --version \S+ --plain-http) /.exec(install) ?? assert.fail(install);
    const here = chart!.replace('127.0.0.1:4873', new URL(release().url).host);
    const text = await shell(`helm template ${here} --kube-version 1.34.0 --values ${values}`, folder);
    assert.match(text, /image: "?forecast:1"?/);
  });

  test('every part of the tutorial was run', t => {
    if (reachable(t)) GUIDE.assertAllTaken();
  });
}
