import type { FactRecord } from '@hopline/events';
import type { LiveRecord, StoredFacts } from '@hopline/log';
import type { Msg } from '@nats-io/nats-core';
import { decodeContinuesText, decodeFacts, idOf, originOf } from './codec.ts';
import { type Headers, headersOf } from './message-headers.ts';

/** A record as the server republishes it after storing it. */
export class JetStreamLive implements LiveRecord {
  readonly seq: number;
  readonly last: number;
  readonly bytes: number;
  readonly continuesText: boolean;
  readonly msg: Msg;
  readonly textAfter: number | undefined;
  readonly #headers: Headers;
  readonly #record: () => FactRecord | undefined;

  private constructor(
    live: Pick<LiveRecord, 'seq' | 'last' | 'textAfter'> & { msg: Msg; headers: Headers; decode: () => FactRecord | undefined },
  ) {
    const { msg, headers, seq, last, textAfter, decode } = live;
    this.seq = seq;
    this.last = last;
    this.textAfter = textAfter;
    this.bytes = msg.data.length;
    this.continuesText = decodeContinuesText(headers);
    this.msg = msg;
    this.#headers = headers;
    this.#record = decode;
  }

  /**
   * Undefined for another message. The server sets `Nats-Sequence`, `Nats-Last-Sequence` and, since 2.10, `Nats-Time-Stamp`. `textAfter`: as in
   * LiveRecord.
   */
  static of(
    msg: Msg,
    taskId: string,
    options: { textAfter?: number | undefined; onUndecodable: () => void },
  ): JetStreamLive | undefined {
    const headers = headersOf(msg);
    const seq = Number(headers?.get('Nats-Sequence'));
    const last = Number(headers?.get('Nats-Last-Sequence'));
    if (headers === undefined || !(seq > 0)) {
      options.onUndecodable();
      return undefined;
    }
    const decode = () => {
      const record = decodeFacts(msg.data, taskId);
      if (!record) options.onUndecodable();
      return record;
    };
    return new JetStreamLive({ msg, headers, seq, last, textAfter: options.textAfter, decode });
  }

  decode(): StoredFacts | undefined {
    const { seq } = this;
    const record = this.#record();
    const storedAt = Date.parse(this.#headers.get('Nats-Time-Stamp'));
    return record && { seq, record, ...(storedAt > 0 && { storedAt }), ...originOf(this.#headers) };
  }

  id(): string | undefined {
    return idOf(this.#headers).id;
  }
}
