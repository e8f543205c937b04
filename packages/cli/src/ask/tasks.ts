import { setTimeout as sleep } from 'node:timers/promises';
import { A2AError, failureReason, isInProgress, stateWord, TASK_STATES, type Task, type TaskState, textOf } from '@hopline/a2a';
import type { TaskPage } from '@hopline/client';
import { kindOfArtifact } from '@hopline/profiles';
import { layOut, noticePrinter } from '@hopline/terminal';
import { type CommandContext, command, type OptionValues } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { count, durationMs, flag, parsed, text, timeSince } from '../command/options.ts';
import { UsageError } from '../command/usage-error.ts';

/** Default and largest value of --limit. */
const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 10_000;
/** Largest page ([A2A 1.0] 3.1.4). */
const PAGE_SIZE_MAX = 100;
/** Page size when questions and artifacts are read, because they make tasks large. */
const DETAILED_PAGE_SIZE_MAX = 20;
/** How many of a task's newest messages are searched for its question. */
const HISTORY_MAX = 20;
/** Maximum number of tasks that are read for a filter that servers other than Hopline ignore. */
const SCANNED_MAX = 10_000;
/** Largest duration that a Hopline server compares. This command compares any. */
const LONGER_MS_MAX = 365 * 86_400_000;
const WATCH_INTERVAL_MS = 2_000;
/** Width of the column with the agents, which has room for two names. */
const AGENTS_WIDTH = 20;
/** First words of a question, or of a reason, in characters. */
const WORDS_MAX = 60;

const STATES = TASK_STATES.map(stateWord);

const OPTIONS = {
  agent: text('NAME', 'tasks of one agent'),
  context: text('ID', 'tasks of one conversation'),
  state: parsed('STATE', `tasks in one state: ${STATES.join(', ')}`, stateNamed, STATES),
  since: parsed('TIME', 'tasks that changed since then: 30s, 15m, 2h, 7d, or a date', timeSince),
  limit: parsed('N', `maximum number of tasks, default ${LIMIT_DEFAULT}`, count({ min: 1, max: LIMIT_MAX })),
  text: text('WORDS', 'tasks whose question, answer or failure reason contains these words'),
  longer: parsed('TIME', 'tasks that took longer: 500ms, 30s, 15m, 2h', durationMs),
  watch: flag('lists again every two seconds until Ctrl-C; in a pipe, prints each task that changes'),
};

export const tasks = command({
  name: 'tasks',
  alias: 'list',
  summary: 'lists your tasks, newest first',
  details:
    'prints id, local time of the last state, state, duration, agents, context, and the first words of the question or the reason of a ' +
    'failure; --json prints tasks without history and artifacts',
  options: OPTIONS,
  run: ({ options }, context) => listTasks(context, options),
});

type ListOptions = OptionValues<typeof OPTIONS>;

function stateNamed(word: string): TaskState {
  const state = TASK_STATES.find(one => stateWord(one) === word.toLowerCase());
  if (state === undefined) throw new UsageError(`must be one of ${STATES.join(', ')}`);
  return state;
}

/** Prints the caller's tasks, newest status first, over as many pages as needed. With `watch`, prints them again and again. */
async function listTasks(context: CommandContext, options: ListOptions): Promise<ExitCode> {
  const { output, json, signal } = context;
  const lineOf = json ? jsonOf : (task: Task) => entryOf(task).join('  ').trimEnd();
  const linesOf = (task: Task) => (output.columns === undefined || json ? [lineOf(task)] : layOut(entryOf(task), output.columns));
  if (!options.watch) {
    for await (const task of tasksOf(context, options)) for (const line of linesOf(task)) output.line(line);
    return EXIT.ok;
  }
  const printed = new Map<string, string>();
  for (;;) {
    const tasks: Task[] = [];
    for await (const task of tasksOf(context, options)) tasks.push(task);
    if (output.columns !== undefined && !json) output.screen(tasks.flatMap(linesOf));
    else
      for (const task of tasks.toReversed()) {
        const change = JSON.stringify(task.status);
        if (printed.get(task.id) !== change) output.line(lineOf(task));
        printed.set(task.id, change);
      }
    await sleep(WATCH_INTERVAL_MS, undefined, { signal });
  }
}

async function* tasksOf(context: CommandContext, options: ListOptions): AsyncGenerator<Task> {
  let pageToken: string | undefined;
  let left = options.limit ?? LIMIT_DEFAULT;
  for (let scanned = 0; scanned < SCANNED_MAX; ) {
    const page = await pageOf(context, options, isFiltered(options) ? PAGE_SIZE_MAX : left, pageToken);
    for (const task of page.tasks.filter(one => fits(one, options))) {
      yield task;
      left -= 1;
      if (left === 0) return;
    }
    // An empty page counts like a full one, because a server could send empty pages forever.
    scanned += page.tasks.length || PAGE_SIZE_MAX;
    pageToken = page.nextPageToken;
    if (pageToken === undefined) return;
  }
}

/** Whether this command must also filter the tasks, because servers other than Hopline ignore these filters. */
function isFiltered({ agent, text, longer }: ListOptions): boolean {
  return agent !== undefined || text !== undefined || longer !== undefined;
}

function fits(task: Task, { agent, text, longer }: ListOptions): boolean {
  if (agent !== undefined && !agentsOf(task).includes(agent)) return false;
  if (longer !== undefined && !((durationMsOf(task) ?? 0) > longer)) return false;
  if (text === undefined) return true;
  const { status, metadata, history = [], artifacts = [] } = task;
  const questions = history.filter(({ role }) => role === 'ROLE_USER').map(({ parts }) => textOf(parts));
  const answers = artifacts.map(({ parts }) => textOf(parts));
  return [...questions, ...answers, failureReason(status, metadata)].some(one => one.toLowerCase().includes(text.toLowerCase()));
}

/**
 * Reads a page with questions and artifacts, because artifacts name the agents. If it exceeds what the client reads, the tasks are read one
 * by one, and only a task that is still too large is read without them.
 */
async function pageOf(
  { client, output, json, signal }: CommandContext,
  options: ListOptions,
  sizeMax: number,
  pageToken: string | undefined,
): Promise<TaskPage> {
  const { context, state, since, text, agent, longer } = options;
  const isDetailed = !json || isFiltered(options);
  const pageSize = Math.min(sizeMax, isDetailed ? DETAILED_PAGE_SIZE_MAX : PAGE_SIZE_MAX);
  const filters = {
    signal,
    onNotice: noticePrinter(output),
    ...(context !== undefined && { contextId: context }),
    ...(state !== undefined && { state }),
    ...(since !== undefined && { statusSince: since }),
    ...(text !== undefined && { text }),
    ...(agent !== undefined && { agent }),
    ...(longer !== undefined && { minDurationMs: Math.min(longer, LONGER_MS_MAX) }),
    ...(pageToken !== undefined && { pageToken }),
  };
  for (const size of isDetailed ? new Set([pageSize, 1]) : [])
    try {
      return await client.list({ ...filters, pageSize: size, historyLength: HISTORY_MAX, includeArtifacts: true });
    } catch (thrown) {
      if (!(thrown instanceof A2AError) || thrown.code !== 'INVALID_AGENT_RESPONSE') throw thrown;
    }
  const page = await client.list({ ...filters, pageSize: isDetailed ? 1 : pageSize, historyLength: 0 });
  if (isFiltered(options)) for (const { id } of page.tasks) output.warn(`task ${id} is left out: it is too large to search`);
  return page;
}

/** Omits the members that only a filter reads, so that the output is the same with and without one. */
function jsonOf({ history: _history, artifacts: _artifacts, ...task }: Task): string {
  return JSON.stringify(task);
}

/** The fields of a task. The last one is for people; the others have a fixed width where possible. */
function entryOf(task: Task): string[] {
  const { id, contextId, status, metadata } = task;
  const reason = status.state === 'TASK_STATE_COMPLETED' ? '' : firstWords(failureReason(status, metadata));
  const question = task.history?.find(({ role }) => role === 'ROLE_USER');
  const words = question === undefined ? '' : firstWords(textOf(question.parts));
  return [
    id,
    status.timestamp === undefined ? '-'.padEnd(19) : localTime(new Date(status.timestamp)),
    stateWord(status.state).padEnd(14),
    durationOf(task).padStart(8),
    (agentsOf(task).join(',') || '-').padEnd(AGENTS_WIDTH),
    contextId,
    ...(words === '' ? [] : [`"${words}"`]),
    ...(reason === '' ? [] : [`(${reason})`]),
  ];
}

/** The agents that answered, or the one that the question named. */
function agentsOf({ artifacts = [], history = [] }: Task): string[] {
  const answers = artifacts.filter(artifact => ['answer', undefined].includes(kindOfArtifact(artifact)));
  const names = [...answers.map(({ metadata }) => metadata?.sourceAgent), ...history.map(({ metadata }) => metadata?.agent)];
  return [...new Set(names.filter(name => typeof name === 'string'))];
}

function firstWords(whole: string): string {
  const text = whole.trim().replaceAll(/\s+/g, ' ');
  const characters = [...text];
  return characters.length <= WORDS_MAX
    ? text
    : `${characters
        .slice(0, WORDS_MAX)
        .join('')
        .replace(/\s\S*$/, '')}…`;
}

function localTime(time: Date): string {
  const two = (value: number) => String(value).padStart(2, '0');
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/**
 * Milliseconds from the start of a task to its last state, or to now if the task still works. Hopline's task ids are UUIDs of version 7,
 * which begin with the time; other ids have no time.
 */
function durationMsOf({ id, status }: Task): number | undefined {
  const [, high, low] = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i.exec(id) ?? [];
  const until = isInProgress(status.state) ? Date.now() : Date.parse(status.timestamp ?? '');
  const ms = until - Number.parseInt(`${high}${low}`, 16);
  return Number.isNaN(ms) || ms < 0 ? undefined : ms;
}

function durationOf(task: Task): string {
  const ms = durationMsOf(task);
  if (ms === undefined) return '-';
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} m ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} m`;
}
