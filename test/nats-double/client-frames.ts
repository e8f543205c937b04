/** A frame of the protocol as a client sends it. */
export type ClientFrame =
  | { type: 'connect'; options: Record<string, unknown> }
  | { type: 'ping' | 'pong' }
  | { type: 'sub'; subject: string; queue: string; sid: string }
  | { type: 'unsub'; sid: string; max: number }
  | { type: 'pub'; subject: string; reply: string; header: string; payload: Buffer }
  | { type: 'unknown'; line: string };

const CRLF = '\r\n';

/** Splits the bytes of a client into frames, whose payloads are parts of these bytes. A frame may arrive in parts. */
export class ClientFrames {
  #rest: Buffer = Buffer.alloc(0);

  *read(chunk: Uint8Array): Generator<ClientFrame> {
    this.#rest =
      this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (;;) {
      const lineEnd = this.#rest.indexOf(CRLF);
      if (lineEnd < 0) return;
      const line = this.#rest.toString('utf8', 0, lineEnd);
      const [word = '', ...words] = wordsOf(line);
      const verb = word.toUpperCase();
      const begin = lineEnd + CRLF.length;
      const sizes = verb === 'HPUB' ? words.slice(-2).map(Number) : verb === 'PUB' ? [0, Number(words.at(-1))] : undefined;
      if (sizes === undefined) {
        this.#rest = this.#rest.subarray(begin);
        yield lineFrame(verb, words, line);
        continue;
      }
      const [headerBytes = 0, bytes = 0] = sizes;
      const end = begin + bytes + CRLF.length;
      if (this.#rest.length < end) return;
      const header = this.#rest.toString('latin1', begin, begin + headerBytes);
      const payload = this.#rest.subarray(begin + headerBytes, begin + bytes);
      this.#rest = this.#rest.subarray(end);
      const [subject = '', reply = ''] = words.slice(0, verb === 'HPUB' ? -2 : -1);
      yield { type: 'pub', subject, reply, header, payload };
    }
  }
}

function wordsOf(line: string): string[] {
  const words = line.split(' ');
  return words.includes('') || line.includes('\t') ? line.split(/[ \t]+/).filter(Boolean) : words;
}

function lineFrame(verb: string, words: string[], line: string): ClientFrame {
  if (verb === 'PING') return { type: 'ping' };
  if (verb === 'PONG') return { type: 'pong' };
  if (verb === 'CONNECT') return { type: 'connect', options: JSON.parse(line.slice('CONNECT '.length)) };
  if (verb === 'UNSUB') return { type: 'unsub', sid: words[0] ?? '', max: Number(words[1] ?? 0) };
  if (verb === 'SUB')
    return { type: 'sub', subject: words[0] ?? '', queue: words.length > 2 ? words[1]! : '', sid: words.at(-1)! };
  return { type: 'unknown', line };
}
