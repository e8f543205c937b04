import { readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import type { AgentSkill } from '@hopline/a2a';
import { createClient } from '@hopline/client';
import { credentialsOf, EnvironmentError, localCommand } from '@hopline/local-cluster';
import { type AgentState, agentStates, startedAgents, watchAgents } from './agent-states.ts';
import { type DemoRun, demoQuestion, runDemo } from './demo.ts';
import { INSTALLATION } from './installation.ts';
import { type LocalCluster, launch } from './launch.ts';
import { LaunchError } from './launch-error.ts';
import { callerCredentials, nextSteps, questionFor } from './next-steps.ts';
import { corsSetting, type Options, parseOptions } from './options.ts';
import { absolutePaths } from './process-environment.ts';
import { Screen } from './screen.ts';

/** A terminal's Ctrl-C arrives directly and through the parent process; signals within this time count as one. */
const SAME_PRESS_MS = 1000;
/** How long the first question waits for agents that are still starting, because an answer without them lacks a promised part. */
const DEMO_AGENTS_MS_MAX = 60_000;

const screen = new Screen(process.stdout, process.env);
const stop = new AbortController();
const kill = new AbortController();

// The cluster keeps running when the reader of this output exits (`npm start | head`).
process.stdout.on('error', () => {});
onStopSignals({
  stop: reason => {
    screen.line(`${reason}: draining`);
    stop.abort();
  },
  kill: () => kill.abort(),
});

try {
  // npm runs scripts in the root of the checkout; INIT_CWD is the user's directory.
  const folder = process.env.INIT_CWD ?? process.cwd();
  const options = parseOptions(process.argv.slice(2), process.env, folder, INSTALLATION.homeBase(folder));
  Object.assign(process.env, absolutePaths(process.env, folder), corsSetting(options, process.env));
  if (options.help) process.stdout.write(readFileSync(INSTALLATION.help));
  else await run(options);
} catch (error) {
  process.exitCode = 1;
  if (!stop.signal.aborted)
    screen.line(`hopline: ${error instanceof LaunchError || error instanceof EnvironmentError ? error.message : String(error)}`);
}
// Everything the launcher owned is closed; an open IPC channel or socket must not keep the process alive.
process.exit();

async function run(options: Options): Promise<void> {
  screen.line('Starting Hopline …');
  const running = await launch(
    options,
    { installation: INSTALLATION, natsServer: process.env.HOPLINE_NATS_SERVER ?? null },
    screen,
    { stop: stop.signal, kill: kill.signal },
  );
  try {
    const first = await agentStates(running.cluster);
    showAddresses(running, first);
    const headers = demoHeaders(options);
    const states = headers === undefined ? first : await whenStarted(running.cluster, first);
    void watchAgents(running.cluster, states, showAgent, stop.signal);
    const demo = headers === undefined ? null : await showDemo(running.url, headers);
    await showNextSteps(running, options, { demo, agents: states });
    if (!stop.signal.aborted) await new Promise<void>(resolve => stop.signal.addEventListener('abort', () => resolve()));
  } finally {
    await running.close();
    screen.line('Stopped; nothing is left running.');
  }
}

function showAddresses({ url, home, cluster }: LocalCluster, agents: readonly AgentState[]): void {
  const here = (path: string) => relative(process.cwd(), path) || '.';
  screen.line();
  const page = cluster.list().find(({ service }) => service === 'console')?.url;
  if (page) screen.line(`Open ${page}/`);
  const state = agents.some(({ fault }) => fault === null) ? 'Hopline is up' : 'Hopline is running, but no agent is ready yet';
  screen.line(`${state}: ${url} (agent card: ${url}.well-known/agent-card.json)`);
  const processes = cluster.list();
  const width = Math.max(18, ...processes.map(({ instance }) => instance.length));
  for (const { instance, pid, url: address } of processes)
    screen.line(`  ${instance.padEnd(width)} ${address.padEnd(26)} ${pid === null ? 'not running' : `pid ${pid}`}`);
  for (const agent of agents) showAgent(agent);
  screen.line(`  logs ${here(home.logs)}/   processes ${here(home.runFile)}`);
  screen.line();
}

function showAgent({ name, fault, isStarting }: AgentState): void {
  if (fault === null) screen.notice(`  agent ${name} ✓`);
  else if (isStarting) screen.notice(`  agent ${name} … starting`);
  else screen.warning(`  agent ${name} ✗ ${fault}; retrying every few seconds`);
}

/** Resolves with the states of the demo's agents when each can work, cannot work, or takes too long. */
async function whenStarted(cluster: LocalCluster['cluster'], first: readonly AgentState[]): Promise<readonly AgentState[]> {
  const namesOf = (states: readonly AgentState[]) => states.filter(({ isStarting }) => isStarting).map(({ name }) => name);
  const starting = namesOf(first);
  if (starting.length === 0) return first;
  screen.line(`The first question waits for ${starting.join(' and ')}, at most ${DEMO_AGENTS_MS_MAX / 1000} s.`);
  const states = await startedAgents(cluster, DEMO_AGENTS_MS_MAX, stop.signal);
  if (stop.signal.aborted) return states;
  for (const state of states) if (starting.includes(state.name) && !state.isStarting) showAgent(state);
  const late = namesOf(states);
  if (late.length > 0) screen.warn(`${late.join(' and ')}: not ready after ${DEMO_AGENTS_MS_MAX / 1000} s; continuing without`);
  return states;
}

/** The credentials of the first question. Undefined: no question is sent. */
function demoHeaders(options: Options): Record<string, string> | undefined {
  if (!options.runsDemo || options.agentsFile !== null || stop.signal.aborted) return undefined;
  const required = callerCredentials(process.env);
  const headers = credentialsOf(process.env);
  if (required === undefined || Object.keys(headers).length > 0) return headers;
  screen.line(`No first question: this cluster requires credentials, and ${required.variable} is not set.`);
  return undefined;
}

async function showDemo(url: string, headers: Record<string, string>): Promise<DemoRun | null> {
  if (stop.signal.aborted) return null;
  screen.line(`Asking: ${demoQuestion()}`);
  const release = screen.holdNotices();
  stop.signal.addEventListener('abort', release);
  try {
    const demo = await runDemo(url, headers, screen, stop.signal);
    const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
    const first = demo.firstTextMs === null ? '' : `, first text after ${seconds(demo.firstTextMs)}`;
    screen.note(`${demo.frames} frames in ${seconds(demo.totalMs)}${first}`);
    return demo;
  } catch (error) {
    // The cluster runs: a failed question is reported and does not stop it.
    if (!stop.signal.aborted) screen.line(`The demo question failed: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  } finally {
    release();
  }
}

type Shown = { demo: DemoRun | null; agents: readonly AgentState[] };

async function showNextSteps({ url, home, cluster }: LocalCluster, options: Options, { demo, agents }: Shown): Promise<void> {
  if (stop.signal.aborted) return;
  const cursor = demo?.cursors[Math.floor(demo.cursors.length / 2)];
  const resume = demo?.taskId && cursor !== undefined ? { taskId: demo.taskId, cursor } : null;
  // The question may fit no skill, so with several agents it must name one of them.
  const asked = agents.find(({ fault }) => fault === null) ?? agents[0];
  const question = options.agentsFile === null ? demoQuestion() : questionFor(await skillsOf(url, asked?.name));
  const agent = options.agentsFile !== null && agents.length > 1 ? asked?.name : undefined;
  const command = localCommand(process.env.INIT_CWD ?? process.cwd()).prefix;
  screen.line();
  const homeOption = home.folder === resolve(INSTALLATION.homeBase(process.cwd()), '.hopline') ? undefined : home.folder;
  const credentials = callerCredentials(process.env);
  for (const line of nextSteps({
    url,
    command,
    home: homeOption,
    question,
    agent,
    processes: cluster.list(),
    credentials,
    resume,
  }))
    screen.line(line);
  screen.line('Ctrl-C drains and stops everything.');
}

/** The skills of an agent, as the agent card shows them. Empty if the card hides them, or requires credentials that are not in the environment. */
async function skillsOf(url: string, name: string | undefined): Promise<readonly AgentSkill[]> {
  const client = createClient({ url, headers: credentialsOf(process.env) });
  const call = { signal: stop.signal };
  try {
    const [card, agents] = await Promise.all([client.card(call), client.agents(call)]);
    const ids = agents.find(agent => agent.name === name)?.skills.map(({ id }) => id) ?? [];
    return card.agent.skills.filter(({ id }) => ids.includes(id));
  } catch {
    return [];
  }
}

/** Calls `stop` for the first signal and `kill` for a later one. */
function onStopSignals({ stop, kill }: { stop: (reason: string) => void; kill: () => void }): void {
  let firstAt: number | null = null;
  const request = (reason: string) => {
    if (firstAt === null) {
      firstAt = performance.now();
      stop(reason);
    } else if (performance.now() - firstAt > SAME_PRESS_MS) kill();
  };
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => request(name));
  // After a fault of the launcher itself its processes must still be drained.
  process.on('uncaughtException', error => request(`internal error (${error.message})`));
  // The bootstrap at the other end of this channel was killed.
  if (process.connected) process.on('disconnect', () => request('the parent process ended'));
}
