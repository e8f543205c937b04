import { ApiError, badRequest, consumerNotFound, noMessageFound, streamNotFound, Unsupported } from './api-error.ts';
import { checkForRetention, consumerConfig } from './consumer-config.ts';
import { directGet, type GetRequest, unknownMember } from './direct-get.ts';
import type { HeaderBlock } from './headers.ts';
import type { MessageStore } from './message-store.ts';
import { type LeaderView, type PurgeRequest, Stream, type StreamHost } from './stream.ts';
import { checkOverlap, checkUpdate, streamConfig } from './stream-config.ts';
import { goTime } from './times.ts';

const PREFIX = '$JS.API.';
const SUBJECT_DETAILS_MAX = 100_000;
const CONSUMERS_PER_PAGE = 256;

/** The streams as known by a server that was deposed as their leader. */
export type Views = ReadonlyMap<string, LeaderView>;

/** The members of an answer, and its type. */
type Call = { type: string; answer: (tokens: string[], body: string, views?: Views) => Record<string, unknown> };

export type ApiOptions = {
  onUnsupported: (what: string) => void;
  /** Describes the servers that store a stream. */
  clusterOf: (stream: Stream, view: LeaderView) => Record<string, unknown>;
  nodes: number;
  /** The replica that answers a direct get. */
  replicaOf: (stream: Stream) => MessageStore;
};

/** The JetStream API of one account. */
export class JsonApi {
  readonly #host: StreamHost;
  readonly #streams: Map<string, Stream>;
  readonly #options: ApiOptions;
  readonly #calls: Record<string, Call>;

  constructor(host: StreamHost, streams: Map<string, Stream>, options: ApiOptions) {
    this.#host = host;
    this.#streams = streams;
    this.#options = options;
    this.#calls = {
      INFO: { type: 'account_info', answer: () => this.#account() },
      'STREAM.CREATE': { type: 'stream_create', answer: ([name], body) => this.#createStream(name!, body) },
      'STREAM.UPDATE': { type: 'stream_update', answer: ([name], body) => this.#updateStream(name!, body) },
      'STREAM.INFO': { type: 'stream_info', answer: ([name], body, views) => this.#streamInfo(name!, body, views) },
      'STREAM.DELETE': { type: 'stream_delete', answer: ([name]) => this.#deleteStream(name!) },
      'STREAM.PURGE': { type: 'stream_purge', answer: ([name], body) => this.#purge(name!, body) },
      'STREAM.MSG.GET': { type: 'stream_msg_get', answer: ([name], body, views) => this.#message(name!, body, views) },
      'STREAM.LEADER.STEPDOWN': { type: 'stream_leader_stepdown', answer: () => this.#stepDown() },
      'CONSUMER.CREATE': { type: 'consumer_create', answer: (tokens, body) => this.#createConsumer(tokens, body) },
      'CONSUMER.INFO': { type: 'consumer_info', answer: ([stream, name]) => this.#consumer(stream!, name!).info() },
      'CONSUMER.DELETE': { type: 'consumer_delete', answer: ([stream, name]) => this.#deleteConsumer(stream!, name!) },
      'CONSUMER.LIST': { type: 'consumer_list', answer: ([stream], body) => this.#consumers(stream!, body) },
    };
  }

  /** Returns false if nothing receives requests to this subject. `views`: the request is answered by a deposed server. */
  request(subject: string, reply: string, payload: Buffer, views?: Views): boolean {
    if (!subject.startsWith(PREFIX)) return false;
    const tokens = subject.slice(PREFIX.length).split('.');
    const body = payload.toString();
    if (subject.startsWith(`${PREFIX}DIRECT.GET.`)) return this.#directGet(tokens.slice(2), reply, body, views);
    if (subject.startsWith(`${PREFIX}CONSUMER.MSG.NEXT.`)) {
      const consumer = this.#streams.get(tokens[3] ?? '')?.consumers.get(tokens[4] ?? '');
      consumer?.pull(reply, payload);
      return consumer !== undefined;
    }
    for (const length of [3, 2, 1]) {
      const call = this.#calls[tokens.slice(0, length).join('.')];
      if (call === undefined) continue;
      this.#answer(reply, call.type, () => call.answer(tokens.slice(length), body, views));
      return true;
    }
    this.#answer(reply, 'unsupported', () => {
      throw new Unsupported(`requests to ${subject}`);
    });
    return true;
  }

  #answer(reply: string, type: string, make: () => Record<string, unknown>): void {
    const members: Record<string, unknown> = { type: `io.nats.jetstream.api.v1.${type}_response` };
    try {
      Object.assign(members, make());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error instanceof Unsupported) this.#options.onUnsupported(error.message);
      Object.assign(members, { error });
      if (type === 'stream_info') Object.assign(members, { total: 0, offset: 0, limit: 0 });
      if (type === 'stream_purge') members.purged = 0;
    }
    if (reply !== '') this.#host.send(reply, '', '', Buffer.from(JSON.stringify(members)));
  }

  #directGet([name = '', ...key]: string[], reply: string, body: string, views: Views | undefined): boolean {
    const stream = this.#streams.get(name);
    if (stream?.config.allow_direct !== true) return false;
    const answer = (header: HeaderBlock, payload: Buffer) => this.#host.send(reply, '', header, payload);
    const request: GetRequest = key.length > 0 ? { last_by_subj: key.join('.') } : body === '' ? {} : parsed(body);
    const unknown = unknownMember(request);
    if (unknown !== undefined) this.#options.onUnsupported(`the member ${unknown} of a direct get`);
    const store = views?.get(name)?.store ?? this.#options.replicaOf(stream);
    directGet({ config: stream.config, store }, request, answer);
    return true;
  }

  #stream(name: string): Stream {
    const stream = this.#streams.get(name);
    if (stream === undefined) throw streamNotFound();
    return stream;
  }

  #account(): Record<string, unknown> {
    const streams = [...this.#streams.values()];
    const reserved = streams.reduce((sum, { config }) => sum + Math.max(0, config.max_bytes), 0);
    return {
      memory: 0,
      storage: streams.reduce((sum, { store }) => sum + store.bytes, 0),
      reserved_memory: 0,
      reserved_storage: reserved,
      streams: streams.length,
      consumers: streams.reduce((sum, { consumers }) => sum + consumers.size, 0),
      limits: { max_memory: -1, max_storage: -1, max_streams: -1, max_consumers: -1, max_ack_pending: -1 },
      api: { level: 5, total: 0, errors: 0 },
    };
  }

  #createStream(name: string, body: string): Record<string, unknown> {
    const config = streamConfig(parsed(body), this.#options.nodes);
    if (config.name !== name) throw new ApiError(400, 10056, 'stream name in subject does not match request');
    const found = this.#streams.get(name);
    if (found !== undefined && !isSame(found.config, config))
      throw new ApiError(400, 10058, 'stream name already in use with a different configuration');
    checkOverlap(config, this.#configs());
    const stream = found ?? new Stream(this.#host, config);
    this.#streams.set(name, stream);
    return { ...stream.info(), did_create: true };
  }

  #configs() {
    return [...this.#streams.values()].map(({ config }) => config);
  }

  #updateStream(name: string, body: string): Record<string, unknown> {
    const stream = this.#stream(name);
    const config = streamConfig(parsed(body), this.#options.nodes);
    checkUpdate(stream.config, config);
    checkOverlap(config, this.#configs());
    const { first_seq: firstSeq } = stream.config;
    stream.update({ ...config, ...(firstSeq !== undefined && { first_seq: firstSeq }) });
    return stream.info();
  }

  #streamInfo(name: string, body: string, views: Views | undefined): Record<string, unknown> {
    const {
      subjects_filter: subjectsFilter = '',
      offset = 0,
      ...rest
    } = parsed<{ subjects_filter?: string; offset?: number }>(body);
    if (Object.keys(rest).some(member => member !== 'deleted_details'))
      throw new Unsupported(`stream info with ${Object.keys(rest)}`);
    const stream = this.#stream(name);
    const view = views?.get(name) ?? stream;
    const { store } = view;
    const total = subjectsFilter === '' ? 0 : store.counts(subjectsFilter).size;
    if (offset > 0 || total > SUBJECT_DETAILS_MAX) throw new Unsupported('pages of subjects in a stream info');
    return {
      total,
      offset: 0,
      limit: total > 0 ? SUBJECT_DETAILS_MAX : 0,
      ...stream.info({ subjectsFilter, store }),
      cluster: this.#options.clusterOf(stream, view),
    };
  }

  #deleteStream(name: string): Record<string, unknown> {
    const stream = this.#stream(name);
    this.#streams.delete(name);
    stream.close();
    return { success: true };
  }

  #purge(name: string, body: string): Record<string, unknown> {
    const request = parsed<PurgeRequest>(body);
    if ((request.seq ?? 0) > 0 && (request.keep ?? 0) > 0) throw badRequest();
    const stream = this.#stream(name);
    if (stream.config.deny_purge) throw new ApiError(500, 10110, 'stream purge not permitted');
    return { success: true, purged: stream.purge(request) };
  }

  #message(name: string, body: string, views: Views | undefined): Record<string, unknown> {
    const request = parsed<GetRequest>(body);
    const { seq = 0, last_by_subj: last, next_by_subj: next } = request;
    const unknown = unknownMember(request);
    if (unknown !== undefined) throw new Unsupported(`the member ${unknown} of a get`);
    if ((seq > 0 && last) || (seq === 0 && !last && !next) || (last && next)) throw badRequest();
    const { store } = views?.get(name) ?? this.#stream(name);
    const found = next ? store.next([next], seq) : seq > 0 ? store.get(seq) : store.last(last!);
    if (found === undefined) throw noMessageFound();
    const { subject, header, payload, storedAtMs } = found;
    return {
      message: {
        subject,
        seq: found.seq,
        ...(header !== '' && { hdrs: Buffer.from(header, 'latin1').toString('base64') }),
        ...(payload.length > 0 && { data: payload.toString('base64') }),
        time: goTime(storedAtMs),
      },
    };
  }

  /** The double has one node, as nats-server without a cluster. */
  #stepDown(): never {
    throw new ApiError(503, 10010, 'JetStream clustering support required');
  }

  #consumer(stream: string, name: string) {
    const consumer = this.#stream(stream).consumers.get(name);
    if (consumer === undefined) throw consumerNotFound();
    return consumer;
  }

  #createConsumer([streamName = '', name = '', ...filter]: string[], body: string): Record<string, unknown> {
    const request = parsed<{ stream_name?: string; config?: Record<string, unknown>; action?: string }>(body);
    const { action = '', config: given = {} } = request;
    if (name === '') throw new Unsupported('consumers without a name');
    if (request.stream_name !== streamName) throw new ApiError(400, 10057, 'stream name in subject does not match request');
    if (given.name !== undefined && given.name !== name)
      throw new ApiError(400, 10132, 'consumer name in subject does not match durable name in request');
    const filterSubject = filter.join('.');
    if (filterSubject !== '' && given.filter_subject !== filterSubject)
      throw new ApiError(400, 10131, 'Consumer create request did not match filtered subject from create subject');
    const stream = this.#stream(streamName);
    const config = consumerConfig(name, given);
    checkForRetention(config, stream.config);
    const found = stream.consumers.get(name);
    if (found === undefined && action === 'update') throw new ApiError(400, 10149, 'consumer does not exist');
    if (found === undefined) return stream.addConsumer(config).info();
    if (action === 'create' && !isSame(found.config, config)) throw new ApiError(400, 10148, 'consumer already exists');
    stream.updateConsumer(found, config);
    return found.info();
  }

  #deleteConsumer(stream: string, name: string): Record<string, unknown> {
    this.#consumer(stream, name).close();
    return { success: true };
  }

  #consumers(stream: string, body: string): Record<string, unknown> {
    const { offset = 0 } = parsed<{ offset?: number }>(body);
    const all = [...this.#stream(stream).consumers.values()].sort((a, b) => (a.config.name < b.config.name ? -1 : 1));
    const page = all.slice(offset, offset + CONSUMERS_PER_PAGE);
    return {
      total: all.length,
      offset,
      limit: CONSUMERS_PER_PAGE,
      consumers: page.map(consumer => consumer.info({ isListed: true })),
    };
  }
}

/** An empty body is an empty object. */
function parsed<T extends object = Record<string, unknown>>(body: string): T {
  if (body.trim() === '') return {} as T;
  try {
    return JSON.parse(body);
  } catch (error) {
    throw new ApiError(400, 10025, `invalid JSON: ${(error as Error).message}`);
  }
}

function isSame(a: object, b: object): boolean {
  const sorted = (_name: string, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([x], [y]) => (x < y ? -1 : 1)))
      : value;
  return JSON.stringify(a, sorted) === JSON.stringify(b, sorted);
}
