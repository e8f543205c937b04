import { constants, setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Layouts, rawSubject, readSubject, SHARDS_DEFAULT } from '@hopline/events';
import { userName, WORK_STREAM } from '@hopline/log-jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { answerCalls } from '../measure/load-process.ts';

/**
 * A stolen login of an agent that does what its permissions allow as fast as it can. It has the lowest priority, as a pod with few shares of the
 * CPU, so that what it takes from others is what NATS and Hopline do for it.
 */
setPriority(constants.priority.PRIORITY_LOW);

/** Requests in flight of an attack whose requests are answered. */
const IN_FLIGHT = 256;
/** Messages between two pauses of an attack that gets no answers. */
const BURST = 1_000;
const BURST_PAUSE_MS = 20;
/** More than the 1,024 of an account. */
const CONNECTIONS = 1_100;
const ANSWER_MS_MAX = 5_000;

/** Those of a log that was made with the defaults. */
const LAYOUTS = Layouts.one(SHARDS_DEFAULT);

export const ATTACKS = ['inputs', 'reads', 'pulls', 'acknowledgements', 'refused messages', 'connections'] as const;
export type Attack = (typeof ATTACKS)[number];
type StartParams = { servers: string; agent: string; attack: Attack };

let stop = new AbortController();
let running: Promise<number> = Promise.resolve(0);

async function start({ servers, agent, attack }: StartParams): Promise<void> {
  stop = new AbortController();
  const user = `agent.${agent}` as const;
  const login = { servers, user: userName(user), pass: user, reconnect: false };
  const [consumer, inbox] = [`agent-${agent}`, `_INBOX.hopline.agent.${agent}`];
  const nc = await connect({ ...login, inboxPrefix: inbox });
  const producer = { id: 'p', agent, turn: 1, attempt: 1 };
  const record = JSON.stringify({
    v: 1,
    at: 1,
    from: producer,
    n: 1,
    inputs: [{ kind: 'text', lane: 'l', tokens: ['x'.repeat(200)] }],
  });
  const attacks: Record<Attack, () => Promise<number>> = {
    inputs: () => requests(nc, n => [rawSubject(`flood-${n}`, LAYOUTS, user), record]),
    reads: () => requests(nc, () => [readSubject(agent), '{"op":"listed"}']),
    pulls: () => requests(nc, () => [`$JS.API.CONSUMER.MSG.NEXT.${WORK_STREAM}.${consumer}`, '{"batch":1,"no_wait":true}']),
    acknowledgements: () => messages(nc, n => [`$JS.ACK.${WORK_STREAM}.${consumer}.1.${n}.${n}.1.0`, `${inbox}.${n}`]),
    'refused messages': () => messages(nc, n => [`a2a.log.00.forged-${n}`]),
    connections: () => connections(login),
  };
  running = attacks[attack]().finally(() => nc.close());
}

/** Returns the number of requests, messages or connections of the attack. */
async function end(): Promise<number> {
  stop.abort();
  return running;
}

/** Without an answer in time, which a full queue of NATS or Hopline can cause, the attack continues with the next request. */
async function requests(nc: NatsConnection, requestOf: (n: number) => [subject: string, text: string]): Promise<number> {
  let count = 0;
  const one = async () => {
    while (!stop.signal.aborted && !nc.isClosed()) {
      const [subject, text] = requestOf(count++);
      await nc.request(subject, text, { timeout: ANSWER_MS_MAX }).catch(() => {});
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
  return count;
}

async function messages(nc: NatsConnection, messageOf: (n: number) => [subject: string, reply?: string]): Promise<number> {
  let count = 0;
  while (!stop.signal.aborted && !nc.isClosed()) {
    for (let n = 0; n < BURST; n += 1) {
      const [subject, reply] = messageOf(count++);
      nc.publish(subject, '', reply === undefined ? {} : { reply });
    }
    await nc.flush();
    await delay(BURST_PAUSE_MS);
  }
  return count;
}

/** Opens connections until no more are permitted, holds them, and opens each that NATS has refused again. */
async function connections(login: Parameters<typeof connect>[0]): Promise<number> {
  const open: NatsConnection[] = [];
  let count = 0;
  while (!stop.signal.aborted) {
    count += 1;
    try {
      open.push(await connect({ ...login, timeout: ANSWER_MS_MAX }));
    } catch {
      await delay(BURST_PAUSE_MS);
    }
    if (open.length >= CONNECTIONS) await delay(BURST_PAUSE_MS);
  }
  await Promise.all(open.map(nc => nc.close()));
  return count;
}

const methods = { start, end };
export type AttackerMethods = typeof methods;
answerCalls(methods);
