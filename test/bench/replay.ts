import type { Fact, FactRecord, TaskAggregate } from '@hopline/events';
import type { Log } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { replayFacts, replayInputs } from '@hopline/replay';
import { project, type TaskView } from '@hopline/task';
import { agent, Scenario } from '@hopline/task/test-kit';
import { startNats } from '../support/nats/nats-server.ts';
import { interleave } from './measure/rounds.ts';
import { spreadOf } from './measure/spread.ts';
import { figure, SPREAD_COLUMNS, spreadCells } from './measure/table.ts';
import { type Groups, timeShares } from './measure/time-shares.ts';
import type { Finding, Question } from './question.ts';
import { textOfTokens, tokenAt } from './tokens.ts';

const ROUNDS = { full: 5, quick: 3, tiny: 1 } as const;
/** Number of tokens in each log. */
const TOKENS = { full: 1_000_000, quick: 400_000, tiny: 2_000 } as const;
const TASK_TOKENS = 500;
/** Tokens per chunk when a relay stores the text of one agent at 50 tokens/s, and when appends are slower than tokens. */
const CHUNK_TOKENS = [5, 50] as const;
/** Tokens per input record: as many as a producer collects while its previous record is in flight. */
const RECORD_TOKENS = 5;
const SAMPLE_RECORDS = 20_000;
const APPENDS_AT_ONCE = 64;
const WANTED_TOKENS_PER_SECOND = 1_000_000;

const GROUPS: Groups = {
  'decoding payloads: JSON.parse': /codec\.ts$|utf8Slice@|decodeUTF8@/,
  'garbage collection': /^\(garbage collector\)@/,
  'NATS client: protocol and messages': /@nats-io/,
  'sockets, and other native code of Node': /^(writeBuffer|writeUtf8String|writev|onStreamRead|readStop|readStart|\(program\))@/,
  'Hopline: reading, merging, folding': /\/(packages|test)\//,
};

/** How fast does one process read a log from its beginning and fold all its tasks, as a projection does? */
export const replay: Question = {
  name: 'replay',
  async ask(size) {
    const findings: Finding[] = [];
    for (const chunkTokens of CHUNK_TOKENS) findings.push(...(await measure(chunkTokens, size)));
    return findings;
  },
};

async function measure(chunkTokens: number, size: keyof typeof TOKENS): Promise<Finding[]> {
  const tokens = TOKENS[size];
  const server = await startNats();
  const log = await openJetStreamLog({ servers: server.url, name: 'bench-replay' });
  try {
    const records = await fill(log, tokens, chunkTokens);
    const sample = await sampleOf(log);
    const cpuUs: Record<string, number[]> = {};
    const ways = timedByCpu(cpuUs, {
      'facts, only JSON.parse': () => parseOnly(sample, records.facts),
      'facts, read': () => readOnly(log),
      'facts, read and folded': () => fold(log, tokens),
      'inputs, read and joined': () => joinInputs(log, tokens),
    });
    await interleave(1, ways);
    for (const found of Object.values(cpuUs)) found.length = 0;
    const seconds = await interleave(ROUNDS[size], ways);
    const perSecond = (name: keyof typeof ways) => spreadOf(seconds[name].map(found => tokens / found));
    const recordsOf = (name: keyof typeof ways) => (name.startsWith('facts') ? records.facts : records.inputs);
    const shares = await timeShares(GROUPS, () => fold(log, tokens));
    const usARecord = (spreadOf(seconds['facts, read and folded']).median / records.facts) * 1e6;
    const rates: Finding = {
      title: `replay: ${tokens} tokens, ${TASK_TOKENS} a task, ${chunkTokens} a chunk, tokens/s in one process`,
      table: {
        columns: ['what', ...SPREAD_COLUMNS, 'records/s', 'us a record', 'of CPU'],
        rows: (Object.keys(ways) as (keyof typeof ways)[]).map(name => {
          const median = spreadOf(seconds[name]).median;
          const perRecord = median / recordsOf(name);
          const cpu = spreadOf(cpuUs[name]!).median / recordsOf(name);
          return [name, ...spreadCells(perSecond(name)), figure(1 / perRecord), figure(perRecord * 1e6), figure(cpu)];
        }),
      },
      notes: [
        'a record has the aggregate of its task, which is not parsed; reading is JSON.parse, nats-server, the socket and its client',
      ],
      targets: [
        {
          name: `tokens/s folded from the log in one process, ${chunkTokens} tokens a chunk`,
          wanted: { atLeast: WANTED_TOKENS_PER_SECOND },
          found: perSecond('facts, read and folded'),
        },
      ],
    };
    const times: Finding = {
      title: `replay: where the time of "facts, read and folded" goes, ${chunkTokens} tokens a chunk`,
      table: {
        columns: ['part', 'share', 'us a record'],
        rows: Object.entries(shares).map(([name, share]) => [name, `${Math.round(share * 100)} %`, figure(share * usARecord)]),
      },
      notes: ['by a profile of one more pass; waiting is for nats-server, and for a processor on a busy machine'],
    };
    return [rates, times];
  } finally {
    await log.close();
    await server.stop();
  }
}

/** Wraps each way of reading, so that the CPU microseconds of each of its runs in this process are added to `cpuUs`. */
function timedByCpu<Name extends string>(
  cpuUs: Record<string, number[]>,
  ways: Record<Name, () => Promise<number>>,
): Record<Name, () => Promise<number>> {
  const timed = Object.entries<() => Promise<number>>(ways).map(([name, run]) => {
    cpuUs[name] = [];
    const measured = async () => {
      const started = process.cpuUsage();
      const seconds = await run();
      const { user, system } = process.cpuUsage(started);
      cpuUs[name]?.push(user + system);
      return seconds;
    };
    return [name, measured];
  });
  return Object.fromEntries(timed) as Record<Name, () => Promise<number>>;
}

/** Facts of some records, as JSON. */
async function sampleOf(log: Log): Promise<string[]> {
  const sample: string[] = [];
  for await (const { facts } of replayFacts(log)) if (sample.push(JSON.stringify(facts)) === SAMPLE_RECORDS) break;
  return sample;
}

/** Seconds that it takes to parse this many records. */
async function parseOnly(sample: readonly string[], records: number): Promise<number> {
  const started = performance.now();
  let count = 0;
  for (let index = 0; index < records; index++) count += (JSON.parse(sample[index % sample.length]!) as Fact[]).length;
  if (count < records) throw new Error('a record has no facts');
  return (performance.now() - started) / 1000;
}

async function readOnly(log: Log): Promise<number> {
  const started = performance.now();
  let count = 0;
  for await (const records of replayFacts(log).batches()) count += records.length;
  if (count === 0) throw new Error('the log is empty');
  return (performance.now() - started) / 1000;
}

async function fold(log: Log, tokens: number): Promise<number> {
  const started = performance.now();
  const views = new Map<string, TaskView>();
  for await (const records of replayFacts(log).batches()) {
    for (const { taskId, facts } of records) {
      let view = views.get(taskId);
      for (const fact of facts) view = project(view, fact);
      views.set(taskId, view!);
    }
  }
  const seconds = (performance.now() - started) / 1000;
  const text = textOfTokens(TASK_TOKENS);
  const isWhole = [...views.values()].every(({ task }) => task.artifacts?.[0]?.parts[0]?.text === text);
  if (!isWhole || views.size !== tokens / TASK_TOKENS) throw new Error('text of a task is not complete');
  return seconds;
}

async function joinInputs(log: Log, tokens: number): Promise<number> {
  const started = performance.now();
  const texts = new Map<string, string>();
  for await (const records of replayInputs(log).batches()) {
    for (const { taskId, record } of records) {
      if (!('inputs' in record)) continue;
      for (const input of record.inputs)
        if (input.kind === 'text') texts.set(taskId, (texts.get(taskId) ?? '') + input.tokens.join(''));
    }
  }
  const seconds = (performance.now() - started) / 1000;
  const text = textOfTokens(TASK_TOKENS);
  if (texts.size !== tokens / TASK_TOKENS || ![...texts.values()].every(found => found === text))
    throw new Error('text of a task is not complete');
  return seconds;
}

/** Stores the inputs and facts of enough tasks for this number of tokens. */
async function fill(log: Log, tokens: number, chunkTokens: number): Promise<{ inputs: number; facts: number }> {
  const ids = Array.from({ length: tokens / TASK_TOKENS }, () => crypto.randomUUID());
  const stored = { inputs: 0, facts: 0 };
  const store = async () => {
    for (let taskId = ids.pop(); taskId !== undefined; taskId = ids.pop()) {
      for (const [index, record] of factsOf(taskId, chunkTokens).entries()) {
        stored.facts += 1;
        await appendFacts(log, record, index);
      }
      for (let n = 1; n <= TASK_TOKENS; n += RECORD_TOKENS) {
        const input = {
          kind: 'text' as const,
          lane: 'a',
          tokens: Array.from({ length: RECORD_TOKENS }, (_, i) => tokenAt(n - 1 + i)),
        };
        await log.inputs.append(taskId, { v: 1, at: n, from: agent('agent'), n, inputs: [input] }, { id: `${taskId}:${n}` });
        stored.inputs += 1;
      }
      newest.delete(taskId);
    }
  };
  await Promise.all(Array.from({ length: APPENDS_AT_ONCE }, store));
  return stored;
}

const newest = new Map<string, number>();

async function appendFacts(log: Log, record: FactRecord, index: number): Promise<void> {
  const { taskId } = record.aggregate;
  const { seq } = await log.facts.append(record, { expected: newest.get(taskId) ?? 0, id: `${taskId}:${index}` });
  newest.set(taskId, seq);
}

/** The records of one task as a relay stores them: one for its beginning, one for each chunk, one for its end. */
function factsOf(taskId: string, chunkTokens: number): FactRecord[] {
  const from = agent('agent');
  const scenario = new Scenario(taskId).message('hi', 'm1', 'agent.argocd', 'transparent');
  const records: FactRecord[] = [];
  let stored = 0;
  const record = () => {
    const facts = scenario.facts.slice(stored);
    stored = scenario.facts.length;
    const producers = { agent: { attempt: 1, n: stored, lastN: stored } };
    const aggregate: TaskAggregate = { ...scenario.aggregate!, producers, foldedSeq: stored, lastNSeq: stored };
    records.push({ v: 1, facts, aggregate, startSeq: stored, startStoredAt: 1 });
  };
  scenario
    .input(from, { kind: 'status', state: 'TASK_STATE_WORKING' })
    .open(from, 'a', { name: 'answer', metadata: { sourceAgent: 'argocd' } });
  record();
  for (let n = 0; n < TASK_TOKENS; n += chunkTokens) {
    const text = Array.from({ length: chunkTokens }, (_, index) => tokenAt(n + index)).join('');
    const chunk = {
      firstSeq: n,
      lastSeq: n,
      count: chunkTokens,
      n,
      reason: 'ready',
      heldMs: 20,
      waitMs: 0,
      firstAt: n,
      lastAt: n,
    };
    scenario.when({ kind: 'run', from, lane: 'a', text, last: false, n, chunk });
    record();
  }
  scenario.input(from, { kind: 'status', state: 'TASK_STATE_COMPLETED' });
  record();
  return records;
}
