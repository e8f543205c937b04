import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Answer, ask } from './ask.ts';
import { demoQuestion } from './demo.ts';
import { type LocalCluster, launch } from './launch.ts';
import { LaunchError } from './launch-error.ts';
import { nextSteps } from './next-steps.ts';
import { type Options, parseOptions } from './options.ts';
import { Screen } from './screen.ts';
import { onStopSignals } from './stop-signals.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
/** Asked of agents nobody here knows: only shown in a command, never sent unasked. */
const QUESTION_FOR_ANY_AGENT = 'Hello, what can you do?';

const screen = new Screen(process.stdout);
const stop = new AbortController();
const kill = new AbortController();

// A reader of this output that went away (`npm start | head`) is no reason to end the cluster.
process.stdout.on('error', () => {});
onStopSignals({
  stop: reason => {
    screen.line(`${reason}: draining`);
    stop.abort();
  },
  kill: () => kill.abort(),
});

try {
  // npm runs scripts in the root of the checkout; INIT_CWD is where the reader stands.
  const options = parseOptions(process.argv.slice(2), process.env, process.env.INIT_CWD ?? process.cwd(), ROOT);
  if (options.help) process.stdout.write(readFileSync(new URL('help.txt', import.meta.url)));
  else await run(options);
} catch (error) {
  process.exitCode = 1;
  if (!stop.signal.aborted) screen.line(`hopline: ${error instanceof LaunchError ? error.message : String(error)}`);
}
// An open IPC channel or socket must not keep the process: everything it owned is closed.
process.exit();

async function run(options: Options): Promise<void> {
  screen.line('Starting Hopline …');
  const running = await launch(
    options,
    { root: ROOT, servicesFolder: `${ROOT}/services`, natsServer: process.env.HOPLINE_NATS_SERVER ?? null },
    screen,
    { stop: stop.signal, kill: kill.signal },
  );
  try {
    showPlaces(running);
    const answer = await askDemo(running.url, options);
    showNextSteps(running, options, answer);
    if (!stop.signal.aborted) await new Promise<void>(resolve => stop.signal.addEventListener('abort', () => resolve()));
  } finally {
    await running.close();
    screen.line('Stopped; nothing is left running.');
  }
}

function showPlaces({ url, home, cluster }: LocalCluster): void {
  const here = (path: string) => relative(process.cwd(), path) || '.';
  screen.line();
  screen.line(`Hopline is up: ${url} (agent card: ${url}.well-known/agent-card.json)`);
  for (const { instance, pid, url: place } of cluster.running())
    screen.line(`  ${instance.padEnd(18)} ${place.padEnd(26)} pid ${pid}`);
  screen.line(`  logs ${here(home.logs)}/   processes ${here(home.runFile)}`);
  screen.line();
}

async function askDemo(url: string, options: Options): Promise<Answer | null> {
  if (!options.asksDemo || options.agentsFile !== null || stop.signal.aborted) return null;
  screen.line(`Asking: ${demoQuestion()}`);
  try {
    const answer = await ask(url, demoQuestion(), screen, stop.signal);
    const seconds = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
    const first = answer.firstTextMs === null ? '' : `, first text after ${seconds(answer.firstTextMs)}`;
    screen.aside(`${answer.frames} frames in ${seconds(answer.totalMs)}${first}`);
    return answer;
  } catch (error) {
    // The cluster runs: a question that failed is worth a sentence, not an end.
    if (!stop.signal.aborted) screen.line(`The demo question failed: ${error instanceof Error ? error.message : String(error)}`);
    return null;
  }
}

function showNextSteps({ url, cluster }: LocalCluster, options: Options, answer: Answer | null): void {
  if (stop.signal.aborted) return;
  const frameId = answer?.frameIds[Math.floor(answer.frameIds.length / 2)];
  const resume = answer?.taskId && frameId !== undefined ? { taskId: answer.taskId, frameId } : null;
  const question = options.agentsFile === null ? demoQuestion() : QUESTION_FOR_ANY_AGENT;
  screen.line();
  for (const line of nextSteps({ url, question, processes: cluster.running(), resume })) screen.line(line);
  screen.line('Ctrl-C drains and stops everything.');
}
