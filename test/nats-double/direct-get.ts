import { type HeaderBlock, statusBlock, withHeaders } from './headers.ts';
import type { MessageStore, StoredMessage } from './message-store.ts';
import type { StreamConfig } from './stream-config.ts';
import { goTime } from './times.ts';

export type GetRequest = {
  seq?: number;
  last_by_subj?: string;
  next_by_subj?: string;
  batch?: number;
  max_bytes?: number;
  multi_last?: string[];
  up_to_seq?: number;
};

const KNOWN = new Set(['seq', 'last_by_subj', 'next_by_subj', 'batch', 'max_bytes', 'multi_last', 'up_to_seq']);
/** Subjects that nats-server answers at most. */
const SUBJECTS_MAX = 1_024;
/** The server's `max_pending`, which bounds an answer without `max_bytes`. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;
const NOTHING = Buffer.alloc(0);

/** The replica that answers. */
export type Replica = { readonly config: StreamConfig; readonly store: MessageStore };
type Answer = (header: HeaderBlock, payload: Buffer) => void;

/** The first member of a request that the double does not know. */
export function unknownMember(request: object): string | undefined {
  return Object.keys(request).find(member => !KNOWN.has(member));
}

/** Answers a direct get (`$JS.API.DIRECT.GET.stream`), which may take several messages. */
export function directGet(stream: Replica, request: GetRequest, answer: Answer): void {
  const { seq = 0, last_by_subj: last, next_by_subj: next, batch = 0, multi_last: multi = [] } = request;
  const fail = (status: string) => answer(statusBlock(status), NOTHING);
  if (seq === 0 && !last && !next && multi.length === 0) return void fail('408 Empty Request');
  const isBad = (last && (seq > 0 || next || batch > 0 || multi.length > 0)) || (next && multi.length > 0);
  if (isBad) return void fail('408 Bad Request');
  if (multi.length > 0) newestOfEach(stream, request, answer);
  else if (batch > 0) series(stream, request, answer);
  else {
    const { store } = stream;
    const found = next ? store.next([next], seq) : seq > 0 ? store.get(seq) : store.last(last!);
    if (found === undefined) fail('404 Message Not Found');
    else answer(described(stream, found), found.payload);
  }
}

function series(stream: Replica, request: GetRequest, answer: Answer): void {
  const { seq = 0, next_by_subj: filter, batch = 0, max_bytes: bytesMax = ANSWER_BYTES_MAX } = request;
  const filters = filter ? [filter] : [];
  const { store } = stream;
  let pending = store.pending(filters, seq);
  let [from, last, bytes] = [seq, 0, 0];
  for (let sent = 0; sent < batch; sent += 1) {
    const found = store.next(filters, from);
    if (found === undefined) {
      if (sent > 0) break;
      return void answer(statusBlock('404 Message Not Found'), NOTHING);
    }
    pending = Math.max(0, pending - 1);
    answer(described(stream, found, { 'Nats-Num-Pending': pending, 'Nats-Last-Sequence': last }), found.payload);
    last = found.seq;
    from = found.seq + 1;
    bytes += sizeOf(found);
    if (bytes >= (bytesMax || ANSWER_BYTES_MAX)) break;
  }
  answer(statusBlock('204 EOB', { 'Nats-Num-Pending': pending, 'Nats-Last-Sequence': last }), NOTHING);
}

function newestOfEach(stream: Replica, request: GetRequest, answer: Answer): void {
  const { multi_last: filters = [], seq: from = 0, batch = 0, max_bytes: bytesMax } = request;
  const { store } = stream;
  const upTo = request.up_to_seq || store.lastSeq;
  const seqs = upTo > store.lastSeq ? [] : store.lastOfEach(filters, upTo);
  if (seqs.length > SUBJECTS_MAX) return void answer(statusBlock('413 Too Many Results'), NOTHING);
  if (seqs.length === 0) return void answer(statusBlock('404 No Results'), NOTHING);
  let [pending, last, bytes, sent] = [seqs.length, 0, 0, 0];
  for (const seq of seqs) {
    pending -= 1;
    if (seq < from) continue;
    const found = store.get(seq)!;
    answer(described(stream, found, { 'Nats-Num-Pending': pending, 'Nats-Last-Sequence': last }), found.payload);
    last = seq;
    bytes += sizeOf(found);
    sent += 1;
    if (bytes >= (bytesMax || ANSWER_BYTES_MAX) || sent === batch) break;
  }
  const end = { 'Nats-Num-Pending': pending, 'Nats-Last-Sequence': last, 'Nats-UpTo-Sequence': upTo };
  answer(statusBlock('204 EOB', end), NOTHING);
}

function described(stream: Replica, { subject, seq, header, storedAtMs }: StoredMessage, more: Record<string, number> = {}) {
  return withHeaders(header, {
    'Nats-Stream': stream.config.name,
    'Nats-Subject': subject,
    'Nats-Sequence': seq,
    'Nats-Time-Stamp': goTime(storedAtMs),
    ...more,
  });
}

function sizeOf({ subject, header, payload }: StoredMessage): number {
  return subject.length + header.length + payload.length;
}
