import { headers, type Msg, type NatsConnection } from '@nats-io/nats-core';
import { Random } from '../simulator/random.ts';
import { firstOperations, type Operation, Operations, STREAMS } from './operations.ts';

/** Operations of one run; then the streams begin again. */
const RUN_OPERATIONS = 400;
/**
 * An answer that has not arrived by then will not arrive. For example, a request that waits for the acknowledgement of others is not
 * answered.
 */
const SILENCE_MS = 750;
const SILENCE = '(silence)';
/** Like SILENCE_MS, for messages that the other server has already sent, because a busy machine may delay one of the two servers. */
const PATIENCE_MS = 30_000;
/**
 * A server passes a change to its consumers only after it has answered the client that made it. So if an answer differs only in the pending
 * count of a consumer, the request is repeated, and so is an empty pull, which changes nothing: this often, and after this time.
 */
const LATE = { triesMax: 10, afterMs: 10 };
const EMPTY_PULL = '404 No Messages';
/** Fields that depend on a server's clock or version, or whose values a server chooses itself (README.md). */
const VOLATILE = new Set(['created', 'ts', 'first_ts', 'last_ts', 'time', 'leader', '_nats.ver']);
const WATCH_INBOX = 'watch.inbox';

export type Difference = { run: number; index: number; operation: Operation; real: string[]; double: string[] };

/** One of the two servers, and what its clients received. */
type Side = { nc: NatsConnection; ackSubjects: string[]; seen: string[] };

export type CompareOptions = {
  seed: number;
  operations: number;
  /** Called with each operation and both answers. */
  onAnswer?: OnAnswer;
};
type OnAnswer = (operation: Operation, real: readonly string[], double: readonly string[]) => void;

/** Sends the same random operations to a real nats-server and to the double. A run ends with its first difference. */
export async function* compare(
  real: NatsConnection,
  double: NatsConnection,
  { seed, operations, onAnswer = () => {} }: CompareOptions,
): AsyncGenerator<{ compared: number; difference: Difference | undefined }> {
  let compared = 0;
  for (let run = seed; compared < operations; run += 1) {
    const count = Math.min(RUN_OPERATIONS, operations - compared);
    const difference = await compareRun(run, [real, double], count, onAnswer);
    const ofRun = difference?.index ?? count;
    compared += ofRun;
    yield { compared: ofRun, difference };
  }
}

async function compareRun(
  run: number,
  [real, double]: [NatsConnection, NatsConnection],
  count: number,
  onAnswer: OnAnswer,
): Promise<Difference | undefined> {
  const sides: [Side, Side] = [
    { nc: real, ackSubjects: [], seen: [] },
    { nc: double, ackSubjects: [], seen: [] },
  ];
  const subscriptions = sides.flatMap(side =>
    ['live.>', WATCH_INBOX].map(subject => side.nc.subscribe(subject, { callback: (_, msg) => void side.seen.push(shown(msg)) })),
  );
  await Promise.all(sides.map(({ nc }) => nc.flush()));
  try {
    const drawn = new Operations(new Random(run, 'operations'));
    const first = firstOperations(WATCH_INBOX);
    for (let index = 0; index < first.length + count; index += 1) {
      const operation = first[index] ?? drawn.next();
      const [expected, answered] = await askBoth(sides, operation);
      onAnswer(operation, expected, answered);
      if (answered.join('\n') !== expected.join('\n')) return { run, index, operation, real: expected, double: answered };
      drawn.deliveries = sides[0].ackSubjects.length;
    }
    return await compareSeen(run, count, sides);
  } finally {
    for (const subscription of subscriptions) subscription.unsubscribe();
    for (const { nc } of sides) for (const stream of STREAMS) await nc.request(`$JS.API.STREAM.DELETE.${stream}`);
  }
}

async function askBoth(sides: [Side, Side], operation: Operation): Promise<[string[], string[]]> {
  const isInfo = /^\$JS\.API\.CONSUMER\.(INFO|LIST)\./.test(operation.subject ?? '');
  const hasAnswered = [false, false];
  const askOf = async (index: 0 | 1) => {
    const shownAnswers = await ask(sides[index], operation, () => hasAnswered[1 - index]!);
    hasAnswered[index] = shownAnswers.at(-1) !== SILENCE;
    return shownAnswers;
  };
  let [real, double] = await Promise.all([askOf(0), askOf(1)]);
  for (let tries = 1; tries < LATE.triesMax && real.join() !== double.join(); tries += 1) {
    const isCountOnly = isInfo && withoutCounts(real) === withoutCounts(double);
    if (!isCountOnly && real.join() !== EMPTY_PULL) break;
    await new Promise(resolve => setTimeout(resolve, LATE.afterMs));
    real = await askOf(0);
    if (isCountOnly) double = await askOf(1);
  }
  return endsByTime(real) && double.at(-1) === EMPTY_PULL ? [[...real.slice(0, -1), EMPTY_PULL], double] : [real, double];
}

/** A real server that gets no processor for `expires` ends a pull that has delivered messages by time, although no more are left. */
const endsByTime = (answers: readonly string[]) => answers.length > 1 && answers.at(-1)!.startsWith('408 Request Timeout');
const withoutCounts = (answers: readonly string[]) => answers.join('\n').replace(/"num_pending":\d+/g, '');

/** Republished and pushed messages arrive by themselves, so they are compared at the end of a run. */
async function compareSeen(run: number, index: number, sides: [Side, Side]): Promise<Difference | undefined> {
  const operation: Operation = { subject: 'log.a.1', body: 'the last one', answers: 'one' };
  await Promise.all(sides.map(side => ask(side, operation)));
  const isComplete = () => sides[0].seen.length >= sides[1].seen.length && sides[1].seen.length > 0;
  const waitMs = sides[1].seen.length > 0 ? PATIENCE_MS : SILENCE_MS;
  for (const untilMs = performance.now() + waitMs; !isComplete() && performance.now() < untilMs; )
    await new Promise(resolve => setTimeout(resolve, 1));
  const [real, double] = sides.map(({ seen }) => [...seen].sort());
  return real!.join('\n') === double!.join('\n') ? undefined : { run, index, operation, real: real!, double: double! };
}

/**
 * The answers to an operation, as text without what differs between any two servers. A server whose twin has answered, as `hasOtherAnswered` shows,
 * is only late.
 */
async function ask(
  side: Side,
  { subject, ack, headers: given = {}, body, answers }: Operation,
  hasOtherAnswered = () => false,
): Promise<string[]> {
  const { nc, ackSubjects } = side;
  inboxes += 1;
  const inbox = `answer.${inboxes}`;
  const shownAnswers: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const subscription = nc.subscribe(inbox, {
    callback: (_, msg) => {
      const isDelivery = msg.reply?.startsWith('$JS.ACK.');
      if (isDelivery) ackSubjects.push(msg.reply!);
      shownAnswers.push(shown(msg, inbox));
      if (isLast(msg, shownAnswers.length, answers)) resolve();
    },
  });
  const sent = headers();
  for (const [name, value] of Object.entries(given)) sent.append(name, value);
  const to = subject ?? ackSubjects[ack!]!;
  nc.publish(to, body, { reply: inbox, ...(Object.keys(given).length > 0 && { headers: sent }) });
  let timer: NodeJS.Timeout | undefined;
  const wait = (ms: number): void => {
    timer = setTimeout(() => {
      if (ms === SILENCE_MS && hasOtherAnswered()) return wait(PATIENCE_MS);
      shownAnswers.push(SILENCE);
      resolve();
    }, ms);
  };
  wait(SILENCE_MS);
  await promise;
  clearTimeout(timer);
  subscription.unsubscribe();
  return shownAnswers;
}

let inboxes = 0;

function isLast(msg: Msg, count: number, answers: Operation['answers']): boolean {
  const code = msg.headers?.code ?? 0;
  if (answers === 'one' || code >= 200) return true;
  if (answers === 'direct get') return !msg.headers?.has('Nats-Num-Pending');
  return !answers.hasBytes && count === answers.batch;
}

function shown(msg: Msg, inbox = ''): string {
  const names = [...(msg.headers?.keys() ?? [])];
  const lines = names.map(name => `${name}: ${name === 'Nats-Time-Stamp' ? 'T' : withoutEstimates(msg.headers!.get(name))}`);
  const status = msg.headers?.code ? `${msg.headers.code} ${msg.headers.description}` : '';
  const ack = withoutEstimates(msg.reply ?? '');
  const subject = msg.subject === inbox ? '' : msg.subject;
  return [subject, ack, status, ...lines, shownBody(msg)].filter(Boolean).join(' | ');
}

/** The subject of an acknowledgement ends with the time of the message and an estimate of what is pending. */
function withoutEstimates(subject: string): string {
  return subject.startsWith('$JS.ACK.') ? subject.split('.').slice(0, 7).join('.') : subject;
}

function shownBody(msg: Msg): string {
  const text = msg.string();
  if (!text.startsWith('{')) return text;
  return JSON.stringify(JSON.parse(text), (name, value) => (VOLATILE.has(name) ? 'T' : inOrder(value)));
}

function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'last_active')
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
