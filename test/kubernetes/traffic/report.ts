import type { Machine } from '../../bench/measure/machine.ts';
import { type ClientLine, isAnswer } from '../load.ts';
import type { JudgedFiring } from './alerts.ts';
import { FAULT_KINDS, FAULT_NAMES, type FaultKind, type FaultName } from './fault-kinds.ts';
import { textDifference } from './text-difference.ts';

/** A fault that happened, in milliseconds since 1970. */
export type Struck = {
  fault: FaultName;
  beganAt: number;
  endedAt: number;
  /** The pods, bounds or settings that it hit. */
  detail: string;
  /** Steps that failed in spite of repetitions, such as a command of Kubernetes. */
  problems: string[];
};

/** Everything that clients saw in the time of some faults. */
type Effects = {
  answers: number;
  lost: number;
  doubled: number;
  /** Failed requests and answers that the fault does not permit, and their reasons. */
  failed: number;
  reasons: Record<string, number>;
  permitted: number;
  refused: number;
  longestSilenceMs: number;
};

/** A long time between two events of a task. `at`: its end, in milliseconds since 1970. */
type Silence = { at: number; ms: number; question: string; fault: FaultName | undefined };

type Row = Effects & { name: string; times: number; problems: string[] };

/** Tasks that the log has and no question explains, and those that it lacks or that did not end. */
export type TaskCounts = { listed: number; surplus: string[]; missing: string[]; open: string[] };

export type TrafficReport = {
  date: string;
  minutes: number;
  seed: number;
  clients: number;
  machine: Machine;
  versions: Record<string, string>;
  cpu: { median: number; highest: number };
  questions: number;
  /** Questions without an end. */
  unanswered: number;
  /** A sentence: why they are not known. */
  tasks: TaskCounts | string;
  rows: Row[];
  total: Effects;
  silences: Silence[];
  struck: Struck[];
  /** A reason why nothing is known about alerts. */
  alertsMissing: string | undefined;
  alerts: JudgedFiring[];
  notes: string[];
};

/** How long after a fault its effects may still reach clients. */
const EFFECTS_MS = 15_000;
const NO_FAULT = 'no fault';
/** Silences above it are listed one by one. */
const WANTED_SILENCE_MS = 5_000;

const none = (): Effects => ({
  answers: 0,
  lost: 0,
  doubled: 0,
  failed: 0,
  reasons: {},
  permitted: 0,
  refused: 0,
  longestSilenceMs: 0,
});

/**
 * Counts the effects on clients, for each kind of fault and in all. An answer counts for the first fault in its time. `expected`: the text of every artifact of an answer;
 * `hash`: that of a whole answer.
 */
export function effectsOf(
  lines: readonly ClientLine[],
  struck: readonly Struck[],
  { expected, hash }: { expected: string; hash: string },
): Pick<TrafficReport, 'rows' | 'total' | 'silences'> {
  const total = none();
  const silences: Silence[] = [];
  const byFault = new Map<FaultName | undefined, Effects>();
  const of = (fault: FaultName | undefined): Effects[] => {
    const found = byFault.get(fault) ?? none();
    byFault.set(fault, found);
    return [found, total];
  };
  const during = (from: number, to: number) =>
    struck.find(({ beganAt, endedAt }) => from <= endedAt + EFFECTS_MS && to >= beganAt)?.fault;
  const fail = (fault: FaultName | undefined, reason: string) => {
    const permits = fault && (FAULT_KINDS[fault] as FaultKind).permits;
    for (const effects of of(fault)) {
      if (permits?.failures.test(reason)) effects.permitted += 1;
      else {
        effects.failed += 1;
        effects.reasons[reason] = (effects.reasons[reason] ?? 0) + 1;
      }
    }
  };
  for (const line of lines) {
    if (isAnswer(line)) {
      const fault = during(line.beganAt, line.at);
      if (line.state !== 'completed') fail(fault, `answer ${line.state}`);
      if (line.gaps > 0) fail(fault, 'gap');
      const wrong = (line.wrong ?? []).map(text => textDifference(expected, text));
      // An artifact is missing, or there is one too many.
      if (wrong.length === 0 && line.state === 'completed' && line.hash !== hash)
        wrong.push({ lost: expected.length, doubled: 0 });
      for (const effects of of(fault)) {
        effects.answers += 1;
        for (const { lost, doubled } of wrong) {
          effects.lost += lost;
          effects.doubled += doubled;
        }
      }
    } else if ('refused' in line) {
      for (const effects of of(during(line.at, line.at))) effects.refused += 1;
    } else if ('failed' in line) {
      fail(during(line.at, line.at), line.failed);
    } else if ('silenceMs' in line) {
      const fault = during(line.at - line.silenceMs, line.at);
      if (line.silenceMs > WANTED_SILENCE_MS) silences.push({ at: line.at, ms: line.silenceMs, question: line.question, fault });
      for (const effects of of(fault)) effects.longestSilenceMs = Math.max(effects.longestSilenceMs, line.silenceMs);
    }
  }
  const rows: Row[] = FAULT_NAMES.map(fault => {
    const own = struck.filter(one => one.fault === fault);
    const problems = own.flatMap(one => one.problems);
    return { name: FAULT_KINDS[fault].name, times: own.length, problems, ...(byFault.get(fault) ?? none()) };
  });
  rows.push({ name: NO_FAULT, times: 0, problems: [], ...(byFault.get(undefined) ?? none()) });
  silences.sort((a, b) => a.at - b.at);
  return { rows, total, silences };
}

/** Compares the tasks in the log with those of the answers: each question has exactly one. */
export function countTasks(listed: readonly { id: string; state: string }[], answered: ReadonlySet<string>): TaskCounts {
  const ids = new Set(listed.map(({ id }) => id));
  return {
    listed: ids.size,
    surplus: [...ids].filter(id => !answered.has(id)),
    missing: [...answered].filter(id => !ids.has(id)),
    open: listed.filter(({ state }) => !/COMPLETED|FAILED|CANCELED|REJECTED/.test(state)).map(({ id }) => id),
  };
}

/** Broken promises, one sentence each. */
export function brokenPromises({ total, unanswered, tasks }: TrafficReport): string[] {
  const found: string[] = [];
  if (total.lost > 0) found.push(`${total.lost} characters were lost`);
  if (total.doubled > 0) found.push(`${total.doubled} characters were doubled`);
  for (const [reason, count] of Object.entries(total.reasons)) found.push(`${count} times: ${reason}`);
  if (unanswered > 0) found.push(`${unanswered} questions have no end`);
  if (typeof tasks === 'string') return [...found, tasks];
  if (tasks.surplus.length > 0) found.push(`tasks without a question: ${tasks.surplus.join(', ')}`);
  if (tasks.missing.length > 0) found.push(`tasks that the list lacks: ${tasks.missing.join(', ')}`);
  if (tasks.open.length > 0) found.push(`tasks without an end: ${tasks.open.join(', ')}`);
  return found;
}

export function markdownOf(report: TrafficReport): string {
  const { date, minutes, seed, clients, machine, versions, cpu, questions, unanswered, tasks, rows, total, struck, alerts } =
    report;
  const broken = brokenPromises(report);
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  const right = alerts.filter(({ explanation }) => explanation !== undefined).length;
  const paragraphs = [
    `${date}, ${machine.commit}: ${minutes} minutes, seed ${seed}, ${clients} clients, ${struck.length} faults. ${questions} questions, ${total.answers} answers, ${unanswered} without an end; ${typeof tasks === 'string' ? tasks : `${tasks.listed} tasks in the log, ${tasks.surplus.length} of them without a question, ${tasks.open.length} without an end`}.`,
    `${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}; ${names.join(', ')}. The cores were busy for ${cpu.median} % of a minute at the median, ${cpu.highest} % at most.`,
    table(
      [
        'fault',
        'times',
        'answers',
        'lost',
        'doubled',
        'failed',
        'cut and sent again',
        'refused, retryable',
        'longest silence, seconds',
      ],
      [
        ...rows.map(row => [row.name, row.name === NO_FAULT ? '' : `${row.times}`, ...cellsOf(row)]),
        ['all', `${struck.length}`, ...cellsOf(total)],
      ],
    ),
    broken.length === 0 ? 'No promise was broken.' : list('Broken promises', broken),
  ];
  const problems = struck.flatMap(one =>
    one.problems.map(problem => `${clock(one.beganAt)} ${FAULT_KINDS[one.fault].name}: ${problem}`),
  );
  if (problems.length > 0) paragraphs.push(list('Steps of faults that failed', problems));
  const silences = report.silences.map(
    ({ at, ms, question, fault }) =>
      `${clock(at - ms)} to ${clock(at)}, question ${question}: ${fault === undefined ? NO_FAULT : FAULT_KINDS[fault].name}`,
  );
  if (silences.length > 0) paragraphs.push(list(`Silences above ${WANTED_SILENCE_MS / 1_000} s`, silences));
  if (report.alertsMissing !== undefined) paragraphs.push(`Alerts: ${report.alertsMissing}.`);
  else if (alerts.length === 0) paragraphs.push('No alert fired.');
  else {
    paragraphs.push(
      `${alerts.length} alerts fired, ${right} of them because of a fault.`,
      table(
        ['alert', 'about', 'from', 'to', 'right', 'because'],
        alerts.map(({ alert, severity, about, startMs, endMs, explanation }) => [
          `${alert} (${severity})`,
          about,
          clock(startMs),
          clock(endMs),
          explanation === undefined ? 'no' : 'yes',
          explanation === undefined ? 'no fault explains it' : `${explanation.fault}: ${explanation.because}`,
        ]),
      ),
    );
  }
  paragraphs.push(
    table(
      ['fault', 'from', 'to', 'what it hit'],
      struck.map(({ fault, beganAt, endedAt, detail }) => [FAULT_KINDS[fault].name, clock(beganAt), clock(endedAt), detail]),
    ),
  );
  if (report.notes.length > 0) paragraphs.push(list('Notes', report.notes));
  return `${paragraphs.join('\n\n')}\n`;
}

const cellsOf = ({ answers, lost, doubled, failed, permitted, refused, longestSilenceMs }: Effects) => [
  ...[answers, lost, doubled, failed, permitted, refused].map(String),
  (longestSilenceMs / 1_000).toFixed(1),
];

const clock = (ms: number) => new Date(ms).toISOString().slice(11, 19);

const list = (title: string, items: readonly string[]) => `${title}:\n\n${items.map(item => `- ${item}`).join('\n')}`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}
