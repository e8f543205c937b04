import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { machine } from '../../bench/measure/machine.ts';
import { Random } from '../../simulator/random.ts';
import { prometheusMissing } from '../../support/prometheus.ts';
import { type Answer, type ClientLine, isAnswer, Load } from '../load.ts';
import { judgeFirings } from './alerts.ts';
import { FAULT_KINDS, FAULT_NAMES, type FaultName } from './fault-kinds.ts';
import { FAULTS } from './faults.ts';
import { Installation, recordedAnswer } from './installation.ts';
import { NodeVolumes } from './node-volumes.ts';
import { type WatchedAlerts, watchAlerts } from './prometheus.ts';
import { countTasks, effectsOf, type Struck, type TaskCounts, type TrafficReport } from './report.ts';
import { drawSchedule, fits } from './schedule.ts';

export type TrafficOptions = {
  minutes: number;
  seed: number;
  clients: number;
  faults: readonly FaultName[];
  print(line: string): void;
  /** Aborted by the user: the run ends early, with a report. */
  signal: AbortSignal;
  /** After each fault, so that a run that ends otherwise has left a report. */
  onReport(report: TrafficReport): void;
};

const TRIES = 3;
const RETRY_MS = 5_000;
const PROGRESS_MS = 60_000;
const READ_MS = 10_000;
/** Lines of all clients between two reads. */
const READ_LINES = 3_000;
const WARM_ANSWERS = 4;
const WARM_MS_MAX = 180_000;
/** Longer than a question that waits for a NATS node with a full volume. */
const FINISH_SECONDS = 300;
const INTERRUPTED_SECONDS = 60;
/** Some alerts start only a while after their cause. */
const ALERTS_MS = 60_000;

export async function runTraffic(options: TrafficOptions): Promise<TrafficReport> {
  const { minutes, seed, clients, print, signal } = options;
  await using stack = new AsyncDisposableStack();
  const installation = new Installation();
  const { release, authority } = installation;
  const notes: string[] = [];
  const step = async <T>(what: string, action: () => Promise<T>): Promise<T> => {
    for (let left = TRIES; ; left -= 1) {
      try {
        return await action();
      } catch (error) {
        const message = `${what}: ${firstLine(error)}`;
        if (left === 1 || signal.aborted) throw new Error(message);
        notes.push(`${new Date().toISOString().slice(11, 19)} repeated: ${message}`);
        await sleep(RETRY_MS);
      }
    }
  };

  const volumes = options.faults.includes('volume') ? await NodeVolumes.mount(stack, release) : undefined;
  const kinds = options.faults.filter(name => name !== 'volume' || volumes !== undefined);
  if (kinds.length < options.faults.length)
    notes.push('No volume was filled: that needs root on the only node of the cluster, with volumes that are folders of it.');
  stack.defer(async () => {
    await release.close();
    await release.kubectl('wait', '--for=delete', `namespace/${release.namespace}`, '--timeout=120s').catch(() => {});
  });
  print(`installing the chart in the namespace ${release.namespace}`);
  await installation.install();
  await release.rolledOut();

  const expected = recordedAnswer();
  const image = await release.image();
  const load = await step('the clients', () =>
    Load.start(release, { name: 'load', image, workers: clients, expected, authority: authority.cert }),
  );
  const lines = new ClientLines();
  const read = async (tail = READ_LINES) => {
    lines.add(await load.lines(tail));
    return lines.all();
  };
  const warmAnswers = async () => (await read()).filter(isAnswer);
  for (const endsAt = Date.now() + WARM_MS_MAX; (await warmAnswers()).length < WARM_ANSWERS; await sleep(1_000)) {
    if (signal.aborted) throw new Error('interrupted before the first answers');
    if (Date.now() > endsAt) throw new Error(`the clients have no answers after ${WARM_MS_MAX / 1_000} s`);
  }
  const hash = hashOf(await warmAnswers());

  const alertsMissing = prometheusMissing && `not evaluated, because ${prometheusMissing}`;
  const alerts: WatchedAlerts | undefined = alertsMissing === undefined ? await watchAlerts(stack, release.namespace) : undefined;
  const cpu = new BusyCores();
  const struck: Struck[] = [];
  const startMs = Date.now();
  const endMs = startMs + minutes * 60_000;
  let current = 'no fault';
  const found = machine();
  const versions = await versionsOf(installation);
  const report = async (unanswered: number, tasks: TaskCounts | string): Promise<TrafficReport> => {
    const all = lines.all();
    let missing = alertsMissing;
    const firings = await (alerts?.since(startMs) ?? Promise.resolve([])).catch(error => {
      missing = `Prometheus does not answer: ${firstLine(error)}`;
      return [];
    });
    return {
      date: new Date().toISOString().slice(0, 10),
      minutes: Math.round((Date.now() - startMs) / 60_000),
      seed,
      clients,
      machine: found,
      versions,
      cpu: cpu.summary(),
      questions: all.filter(line => 'asked' in line).length,
      unanswered,
      tasks,
      ...effectsOf(all, struck, { expected, hash }),
      struck: [...struck],
      alertsMissing: missing,
      alerts: judgeFirings(firings, struck),
      notes,
    };
  };

  const ended = new AbortController();
  const progress = async () => {
    for (
      let nextMs = startMs + PROGRESS_MS;
      !ended.signal.aborted;
      await sleep(READ_MS, undefined, { signal: ended.signal }).catch(() => {})
    ) {
      const all = await read().catch(() => lines.all());
      if (Date.now() < nextMs) continue;
      const sinceMs = nextMs - PROGRESS_MS;
      nextMs += PROGRESS_MS;
      const busy = cpu.sample();
      const { total } = effectsOf(
        all.filter(({ at }) => at >= sinceMs),
        struck,
        { expected, hash },
      );
      const now = (await alerts?.now().catch(() => ['unknown'])) ?? [];
      const figures = [
        `${total.answers} answers`,
        `${total.lost} lost`,
        `${total.doubled} doubled`,
        `${total.failed} failed`,
        `${total.refused} refused`,
        `silence ${(total.longestSilenceMs / 1_000).toFixed(1)} s`,
        `cores ${busy} %`,
        current,
        ...(now.length > 0 ? [`alerts: ${now.join(', ')}`] : []),
      ];
      print(`minute ${Math.round((Date.now() - startMs) / 60_000)}: ${figures.join('; ')}`);
    }
  };
  const watching = progress();

  for (const scheduled of drawSchedule(seed, kinds)) {
    if (signal.aborted || Date.now() >= endMs) break;
    if (!fits(scheduled, endMs - Date.now())) {
      // Shorter kinds may still fit.
      if (kinds.every(fault => !fits({ ...scheduled, fault }, endMs - Date.now()))) break;
      continue;
    }
    await sleep(scheduled.quietMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) break;
    const { name } = FAULT_KINDS[scheduled.fault];
    current = name;
    const one: Struck = {
      fault: scheduled.fault,
      beganAt: Date.now(),
      endedAt: Number.POSITIVE_INFINITY,
      detail: '',
      problems: [],
    };
    struck.push(one);
    const random = new Random(scheduled.seed, scheduled.fault);
    const target = {
      installation,
      random,
      volumes,
      signal,
      step,
      lines: () => read(),
      add: (more: readonly ClientLine[]) => lines.add(more),
    };
    try {
      one.detail = await FAULTS[scheduled.fault](target);
    } catch (error) {
      one.problems.push(firstLine(error));
      // The next fault must not begin in the middle of this one.
      if (!signal.aborted) await release.rolledOut().catch(failure => one.problems.push(firstLine(failure)));
    }
    one.endedAt = Date.now();
    current = 'no fault';
    print(
      `${name}: ${Math.round((one.endedAt - one.beganAt) / 1_000)} s; ${[one.detail, ...one.problems].filter(text => text !== '').join('; ')}`,
    );
    options.onReport(await report(0, 'the run has not ended'));
  }
  await sleep(Math.max(0, endMs - Date.now()), undefined, { signal }).catch(() => {});

  print('the clients end their questions');
  await load
    .finish(signal.aborted ? INTERRUPTED_SECONDS : FINISH_SECONDS)
    .catch(error => notes.push(`The clients did not end: ${firstLine(error)}`));
  ended.abort();
  await watching;
  await step('the log of the clients', async () => lines.add(await load.lines()));
  const all = lines.all();
  const answered = all.filter(isAnswer);
  const unanswered = all.filter(line => 'asked' in line).length - answered.length;
  const tasks = await step('the list of tasks', () => listTasks(installation)).then(
    listed => countTasks(listed, new Set(answered.map(({ task }) => task))),
    error => `the list of tasks could not be read: ${firstLine(error)}`,
  );
  for (const name of FAULT_NAMES.filter(kind => kinds.includes(kind) && !struck.some(({ fault }) => fault === kind)))
    notes.push(`No time for: ${FAULT_KINDS[name].name}.`);
  if (alerts !== undefined) await sleep(ALERTS_MS, undefined, { signal }).catch(() => {});
  const final = await report(unanswered, tasks);
  options.onReport(final);
  print('removing the namespace');
  return final;
}

/** The lines of all clients, each one once, in whatever portions they were read. */
class ClientLines {
  readonly #lines = new Map<string, ClientLine>();

  add(lines: readonly ClientLine[]): void {
    for (const line of lines) this.#lines.set(isAnswer(line) ? line.question : JSON.stringify(line), line);
  }

  all(): readonly ClientLine[] {
    return [...this.#lines.values()];
  }
}

/** Percent of the time of all cores of this machine, sampled once a minute. */
class BusyCores {
  readonly #samples: number[] = [];
  #last = times();

  sample(): number {
    const now = times();
    const busy = Math.round((100 * (now.busy - this.#last.busy)) / Math.max(1, now.total - this.#last.total));
    this.#last = now;
    this.#samples.push(busy);
    return busy;
  }

  summary(): { median: number; highest: number } {
    const sorted = [...this.#samples].sort((a, b) => a - b);
    return { median: sorted[Math.floor(sorted.length / 2)] ?? 0, highest: sorted.at(-1) ?? 0 };
  }
}

function times(): { busy: number; total: number } {
  let busy = 0;
  let total = 0;
  for (const { times: of } of cpus()) {
    const all = of.user + of.nice + of.sys + of.irq + of.idle;
    total += all;
    busy += all - of.idle;
  }
  return { busy, total };
}

/** Throws unless the first answers are the recorded text. */
function hashOf(answers: readonly Answer[]): string {
  const wrong = answers.find(answer => answer.state !== 'completed' || answer.wrong !== undefined || answer.length === 0);
  if (wrong !== undefined)
    throw new Error(`an answer before the first fault is not the recorded one: ${JSON.stringify(wrong).slice(0, 500)}`);
  const hashes = new Set(answers.map(({ hash }) => hash));
  if (hashes.size !== 1) throw new Error('answers before the first fault differ');
  return answers[0]!.hash;
}

async function versionsOf({ release }: Installation): Promise<Record<string, string>> {
  const kubernetes = JSON.parse(await release.kubectl('version', '--output', 'json')) as {
    serverVersion: { gitVersion: string };
  };
  const nats = 'jsonpath={.spec.template.spec.containers[0].image}';
  return {
    Kubernetes: kubernetes.serverVersion.gitVersion,
    Hopline: await release.image(),
    NATS: await release.kubectl('get', 'statefulset/hopline-nats', '--output', nats),
  };
}

/** Every task in the log. */
async function listTasks({ release, authority }: Installation): Promise<{ id: string; state: string }[]> {
  const script = `
    const https = require('node:https');
    const ca = ${JSON.stringify(authority.cert)};
    const read = path => new Promise((resolve, reject) => {
      https.get({ host: 'hopline-ingress', port: 8000, path, ca, headers: { 'a2a-version': '1.0' } }, response => {
        let text = '';
        response.on('data', part => { text += part; }).on('end', () => response.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(text)));
      }).on('error', reject);
    });
    (async () => {
      for (let token = ''; ;) {
        const { tasks = [], nextPageToken } = await read('/tasks?pageSize=100&historyLength=0' + (token && '&pageToken=' + encodeURIComponent(token)));
        for (const { id, status } of tasks) console.log(JSON.stringify({ id, state: status.state }));
        if (!nextPageToken) return;
        token = nextPageToken;
      }
    })();`;
  await release.kubectl('delete', 'pod/tasks', '--ignore-not-found');
  const printed = await release.runScript('tasks', script);
  return printed.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as { id: string; state: string }]));
}

function firstLine(error: unknown): string {
  const { message, stderr } = error as { message?: string; stderr?: string };
  const text = stderr?.trim() || message || String(error);
  return text.split('\n')[0]!.slice(0, 300);
}
