import type { Random } from '../simulator/random.ts';

/**
 * A request to a server. `answers`: how many messages answer it. `ack`: the number of an earlier delivery, whose reply subject is the subject of
 * the request.
 */
export type Operation = {
  subject?: string;
  ack?: number;
  headers?: Record<string, string>;
  body: string;
  answers: 'one' | 'direct get' | { batch: number; hasBytes: boolean };
};

/** The streams of a run: records that are republished, entries of which only the newest is kept, and work. */
export const STREAMS = ['RECORDS', 'ENTRIES', 'WORK'] as const;
type StreamName = (typeof STREAMS)[number];

const SUBJECTS: Record<StreamName, readonly string[]> = {
  RECORDS: ['log.a.1', 'log.a.2', 'log.b.1', 'log.b.2', 'log.b.3'],
  ENTRIES: ['entry.x', 'entry.y', 'entry.y.1', 'entry.z.1', 'entry.z.2'],
  WORK: ['work.one.t1', 'work.one.t2', 'work.two.t1', 'work.two.t3'],
};
const FILTERS: Record<StreamName, readonly string[]> = {
  RECORDS: ['log.>', 'log.a.*', 'log.b.>', 'log.*.1', 'log.a.1', 'log.none'],
  ENTRIES: ['entry.>', 'entry.*', 'entry.y', 'entry.z.*', 'entry.none'],
  WORK: ['work.>', 'work.one.>', 'work.two.*', 'work.one.t1', 'work.none'],
};
const IDS = ['i1', 'i2', 'i3', 'i4', 'i5', 'i6', 'i7', 'i8'];
const CONSUMERS = ['c1', 'c2', 'c3', 'c4'];
const DELIVER_POLICIES = ['all', 'last', 'new', 'by_start_sequence'];
const NANOS_PER_MS = 1_000_000;
/** So long that no acknowledgement falls due and no consumer ends during a run: when these happen depends on how fast a server is. */
const NEVER_NANOS = 600_000 * NANOS_PER_MS;

/** The requests that create the streams of a run, and the push consumer that watches one of them. */
export function firstOperations(watchInbox: string): Operation[] {
  const create = (config: { name: string; [setting: string]: unknown }) => api(`STREAM.CREATE.${config.name}`, config);
  const common = { allow_direct: true, deny_delete: true };
  return [
    create({
      ...common,
      name: 'RECORDS',
      subjects: ['log.>'],
      max_msgs: 60,
      republish: { src: 'log.>', dest: 'live.>' },
    }),
    create({ ...common, name: 'ENTRIES', subjects: ['entry.>'], max_msgs_per_subject: 1, discard: 'new', max_bytes: 400 }),
    create({
      ...common,
      name: 'WORK',
      subjects: ['work.>'],
      retention: 'workqueue',
      discard: 'new',
      discard_new_per_subject: true,
      max_msgs_per_subject: 5,
      max_consumers: 3,
    }),
    api('CONSUMER.CREATE.RECORDS.watch', {
      stream_name: 'RECORDS',
      config: {
        name: 'watch',
        filter_subjects: ['log.a.1', 'log.b.1'],
        deliver_policy: 'new',
        deliver_subject: watchInbox,
        ack_policy: 'none',
        headers_only: true,
        inactive_threshold: NEVER_NANOS,
        mem_storage: true,
        num_replicas: 1,
      },
    }),
  ];
}

/** Draws operations. `deliveries`: how many deliveries with a reply subject there have been. */
export class Operations {
  readonly #random: Random;
  deliveries = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  next(): Operation {
    const { between } = this.#random;
    const draw = between.call(this.#random, 1, 100);
    const stream = this.#random.pick(STREAMS);
    if (draw <= 36) return this.#publish(stream);
    if (draw <= 52) return this.#pull(stream);
    if (draw <= 64 && this.deliveries > 0) return this.#acknowledge();
    if (draw <= 74) return this.#directGet(stream);
    if (draw <= 80) return this.#get(stream);
    if (draw <= 84)
      return api(`STREAM.INFO.${stream}`, this.#random.chance(0.5) ? { subjects_filter: this.#filter(stream) } : {});
    if (draw <= 92) return this.#consumer(stream);
    if (draw <= 95) return api(`CONSUMER.INFO.${stream}.${this.#random.pick(CONSUMERS)}`);
    if (draw === 96) return api(`CONSUMER.LIST.${stream}`, {});
    if (draw === 97) return api(`CONSUMER.DELETE.${stream}.${this.#random.pick(CONSUMERS)}`);
    if (draw === 98) return this.#update(stream);
    return this.#purge(stream);
  }

  #filter(stream: StreamName): string {
    return this.#random.pick(FILTERS[stream]);
  }

  /** Sequences are close to those of a stream with a few hundred messages. */
  #seq(): number {
    return this.#random.between(0, this.#random.chance(0.5) ? 20 : 120);
  }

  #publish(stream: StreamName): Operation {
    const random = this.#random;
    const headers: Record<string, string> = {};
    if (random.chance(0.4)) headers['Nats-Msg-Id'] = `${random.pick(IDS)}${random.between(0, 9)}`;
    if (random.chance(0.15)) headers['Nats-Expected-Last-Subject-Sequence'] = `${random.chance(0.5) ? 0 : this.#seq()}`;
    if (random.chance(0.05)) headers['Nats-Expected-Last-Sequence'] = `${this.#seq()}`;
    if (random.chance(0.05)) headers['Nats-Expected-Last-Msg-Id'] = random.pick(IDS);
    if (random.chance(0.03)) headers['Nats-Expected-Stream'] = random.pick(STREAMS);
    if (random.chance(0.02)) headers['Nats-Rollup'] = random.pick(['sub', 'all']);
    if (random.chance(0.3)) headers['X-Other'] = 'a value';
    const subject = random.chance(0.02) ? 'nothing.listens' : random.pick(SUBJECTS[stream]);
    return { subject, headers, body: 'x'.repeat(random.between(0, 60)), answers: 'one' };
  }

  #pull(stream: StreamName): Operation {
    const random = this.#random;
    const batch = random.between(1, 6);
    const hasBytes = random.chance(0.2);
    const request = {
      batch,
      no_wait: true,
      ...(hasBytes && { max_bytes: random.between(60, 400) }),
      // Rare, because an empty pull takes its whole time; and long, because a busy machine must not decide how a request ends.
      ...(random.chance(0.04) && { expires: 250 * NANOS_PER_MS }),
    };
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${random.pick(CONSUMERS)}`;
    return { subject, body: JSON.stringify(request), answers: { batch, hasBytes } };
  }

  #acknowledge(): Operation {
    const random = this.#random;
    const ack = random.between(Math.max(0, this.deliveries - 12), this.deliveries - 1);
    const body = random.pick(['+ACK', '+ACK', '+ACK', '', '-NAK', '-NAK', '+WPI', '+TERM']);
    return { ack, body, answers: 'one' };
  }

  #directGet(stream: StreamName): Operation {
    const random = this.#random;
    if (random.chance(0.2))
      return { subject: `$JS.API.DIRECT.GET.${stream}.${random.pick(SUBJECTS[stream])}`, body: '', answers: 'direct get' };
    const [seq, filter] = [this.#seq(), this.#filter(stream)];
    const batch = random.between(1, 8);
    const bytes = random.chance(0.3) ? { max_bytes: random.between(1, 300) } : {};
    const request = random.pick<object>([
      { seq },
      { last_by_subj: filter },
      { next_by_subj: filter, seq },
      { next_by_subj: filter, seq, batch, ...bytes },
      { next_by_subj: filter, seq, batch, ...bytes },
      { seq, batch },
      { multi_last: [filter, this.#filter(stream)], ...bytes },
      { multi_last: [filter], seq, up_to_seq: seq + 10 },
      { last_by_subj: filter, batch },
      {},
    ]);
    return { subject: `$JS.API.DIRECT.GET.${stream}`, body: JSON.stringify(request), answers: 'direct get' };
  }

  #get(stream: StreamName): Operation {
    const [seq, filter] = [this.#seq(), this.#filter(stream)];
    const request = this.#random.pick<object>([
      { seq },
      { last_by_subj: filter },
      { next_by_subj: filter, seq },
      { seq, last_by_subj: filter },
    ]);
    return api(`STREAM.MSG.GET.${stream}`, request);
  }

  #consumer(stream: StreamName): Operation {
    const random = this.#random;
    const name = random.pick(CONSUMERS);
    const isWork = stream === 'WORK';
    // nats-server does not notify a consumer of messages after an update that removes its filter (README.md), so consumers of one name never have a
    // filter.
    const filter: { filter_subject?: string } = name === CONSUMERS[0] ? {} : { filter_subject: this.#filter(stream) };
    const policy =
      isWork && random.chance(0.9)
        ? 'all'
        : random.pick(stream === 'ENTRIES' ? [...DELIVER_POLICIES, 'last_per_subject'] : DELIVER_POLICIES);
    const ack = isWork && random.chance(0.9) ? 'explicit' : random.pick(['none', 'explicit']);
    const config = {
      ...(random.chance(0.5) && { durable_name: name }),
      name,
      ...filter,
      deliver_policy: policy,
      ...(policy === 'by_start_sequence' && { opt_start_seq: Math.max(1, this.#seq()) }),
      ack_policy: ack,
      inactive_threshold: NEVER_NANOS,
      ...(ack === 'explicit' && { ack_wait: NEVER_NANOS, max_deliver: random.pick([-1, 2, 3]) }),
      ...(ack === 'explicit' && random.chance(0.3) && { max_ack_pending: random.between(1, 4) }),
    };
    const action = random.pick(['create', 'create', 'create', '', 'update']);
    const ending = filter.filter_subject === undefined ? '' : `.${filter.filter_subject}`;
    return api(`CONSUMER.CREATE.${stream}.${name}${ending}`, { stream_name: stream, config, action });
  }

  /** Limits grow and shrink around their initial values. */
  #update(stream: StreamName): Operation {
    const random = this.#random;
    const create = firstOperations('').find(({ subject }) => subject?.endsWith(`CREATE.${stream}`))!;
    const config: Record<string, unknown> = { ...JSON.parse(create.body), description: random.pick(['', 'one', 'other']) };
    if (stream === 'RECORDS') config.max_msgs = random.between(20, 80);
    if (stream === 'ENTRIES') config.max_bytes = random.between(250, 500);
    if (stream === 'WORK') config.max_msgs_per_subject = random.between(4, 7);
    if (random.chance(0.1)) config.retention = random.pick(['limits', 'workqueue']);
    return api(`STREAM.UPDATE.${stream}`, config);
  }

  #purge(stream: StreamName): Operation {
    const random = this.#random;
    const filter = this.#filter(stream);
    const request = random.pick<object>([
      { filter, seq: this.#seq() },
      { filter, seq: this.#seq() },
      { filter, keep: random.between(1, 4) },
      { filter, keep: 1, seq: 5 },
      { filter },
    ]);
    return api(`STREAM.PURGE.${stream}`, request);
  }
}

function api(call: string, request?: object): Operation {
  return { subject: `$JS.API.${call}`, body: request === undefined ? '' : JSON.stringify(request), answers: 'one' };
}
