import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Recording, render } from './render.ts';
import type { Output } from './terminal.ts';

/**
 * Records the picture of README.md from a real run: `node infra/local/picture/record.ts`. It starts a cluster, asks it in a terminal, kills the
 * relay in mid-answer, and verifies the task afterwards. HOPLINE_NATS_SERVER names nats-server. It needs `script` of util-linux, which runs a
 * program in a terminal.
 */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CLI = `${ROOT}packages/cli/src/main.ts`;
const COLUMNS = 96;
const QUESTION = 'explain hopline';
/** The relay is killed once the answer has this many characters. */
const KILL_AT_CHARS = 620;
/** Longer pauses are cut to this length. The picture states the real one. */
const IDLE_MS_MAX = 3_000;
const START_MS = 600;
/** Outputs within this time are one. */
const TOGETHER_MS = 50;

const home = mkdtempSync(join(tmpdir(), 'hopline-picture-'));
const env = { ...process.env, HOPLINE_HOME: join(home, 'home'), FORCE_COLOR: '1' };
const launcher = spawn(process.execPath, [`${ROOT}infra/local/launcher/main.ts`, '--port', '0', '--no-demo'], {
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  let printed = '';
  const notices: ((text: string) => void)[] = [];
  launcher.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
    for (const notice of notices) notice(text);
  });
  while (!/agent guide ✓.*Ctrl-C drains/s.test(printed)) await once(launcher.stdout, 'data');
  const url = /is up: (\S+)/.exec(printed)![1]!;

  const began = performance.now();
  const now = () => performance.now() - began;
  const client: Output[] = [{ ms: 0, text: `$ hopline ask "${QUESTION}"\n` }];
  const cluster: Output[] = [];
  notices.push(text => cluster.push({ ms: now(), text }));
  const ask = inTerminal(`ask --url ${url} '${QUESTION}'`);
  let [answer, killedAt, againAt] = ['', 0, 0];
  ask.stdout!.setEncoding('utf8').on('data', (text: string) => {
    client.push({ ms: now(), text });
    answer += text;
    if (killedAt > 0 && againAt === 0 && now() > killedAt + TOGETHER_MS) againAt = now();
    if (killedAt > 0 || answer.length < KILL_AT_CHARS) return;
    const { processes } = JSON.parse(readFileSync(`${env.HOPLINE_HOME}/run.json`, 'utf8'));
    const { pid } = processes.find(({ service }: { service: string }) => service === 'relay');
    killedAt = now();
    cluster.push({ ms: killedAt, text: `$ kill -9 ${pid}   # the relay\n` });
    process.kill(pid, 'SIGKILL');
  });
  await once(ask, 'close');
  const task = /task (\S+) submitted/.exec(answer)![1]!;
  cluster.push({ ms: now() + 500, text: `$ hopline verify ${task}\n` });
  const verify = inTerminal(`verify ${task}`);
  let verdict = '';
  for await (const text of verify.stdout!.setEncoding('utf8')) verdict += text;
  cluster.push({ ms: now() + 1_000, text: verdict });

  const recording = paced(client, cluster, killedAt, againAt);
  writeFileSync(new URL('kill-relay.json', import.meta.url), `${JSON.stringify(recording, null, 2)}\n`);
  writeFileSync(`${ROOT}docs/pictures/kill-relay.svg`, render(recording));
} finally {
  launcher.kill('SIGTERM');
  if (launcher.exitCode === null) await once(launcher, 'exit');
  rmSync(home, { recursive: true, force: true });
}

/** Runs `hopline` in a terminal of its own, so that it writes exactly what a person sees. */
function inTerminal(command: string): ChildProcess {
  const line = `stty cols ${COLUMNS} rows 40; ${process.execPath} ${CLI} ${command}`;
  return spawn('script', ['-qefc', line, '/dev/null'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** The outputs, with long pauses cut to whole steps of TOGETHER_MS. */
function paced(client: Output[], cluster: Output[], killedAt: number, againAt: number): Recording {
  const times = [0, ...[...client, ...cluster].map(({ ms }) => ms)].toSorted((a, b) => a - b);
  const shifts: { fromMs: number; shiftMs: number }[] = [];
  let shiftMs = START_MS;
  for (const [index, ms] of times.entries()) {
    shiftMs -= Math.max(0, ms - (times[index - 1] ?? 0) - IDLE_MS_MAX);
    shifts.push({ fromMs: ms, shiftMs });
  }
  const at = (ms: number) => {
    const { shiftMs: shift } = shifts.findLast(({ fromMs }) => fromMs <= ms) ?? { shiftMs: START_MS };
    return Math.round((ms + shift) / TOGETHER_MS) * TOGETHER_MS;
  };
  const outputs = (given: Output[]) => given.map(({ ms, text }) => ({ ms: at(ms), text }));
  return {
    columns: COLUMNS,
    panes: [
      { title: 'a client', rows: 19, outputs: outputs(client) },
      { title: 'the cluster', rows: 5, outputs: outputs(cluster) },
    ],
    killMs: at(killedAt),
    againMs: at(againAt),
    silentMs: Math.round(againAt - killedAt),
  };
}
