/** Frames between a sub-agent and the host of its code: four bytes of length (little endian), then one JSON document in UTF-8. Pure. */

const HEADER_BYTES = 4;
/** Largest frame that a sub-agent accepts. One event may be as large as the text of a whole turn, 16 MiB. */
export const FRAME_BYTES_MAX = 17 * 1024 * 1024;
/** Frames below this size are parsed without a look at their structure. */
const SMALL_FRAME_BYTES = 256 * 1024;
/**
 * Commas and opening brackets outside strings in a larger frame. A parsed value takes up to 20 times the bytes of its JSON, so a single
 * frame of brackets could exhaust the memory of the sub-agent.
 */
export const STRUCTURE_MAX = 256 * 1024;

/** The other side broke the protocol. The message names the rule and no content. */
export class ProtocolFault extends Error {
  override readonly name = 'ProtocolFault';
}

/** `json` as a frame. */
export function frameOf(json: string): Buffer {
  const bytes = Buffer.byteLength(json);
  const frame = Buffer.allocUnsafe(HEADER_BYTES + bytes);
  frame.writeUInt32LE(bytes, 0);
  frame.write(json, HEADER_BYTES, 'utf8');
  return frame;
}

/** Cuts a stream of bytes into the documents of its frames. */
export class FrameReader {
  readonly #bytesMax: number;
  #header: Buffer = Buffer.alloc(0);
  #body: Buffer | undefined;
  #filled = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The documents that `chunk` completes. Throws ProtocolFault; the reader must not be used afterwards. */
  read(chunk: Buffer): Buffer[] {
    const found: Buffer[] = [];
    let rest = chunk;
    while (rest.length > 0) rest = this.#body === undefined ? this.#begin(rest, found) : this.#fill(this.#body, rest, found);
    return found;
  }

  #begin(chunk: Buffer, found: Buffer[]): Buffer {
    const data = this.#header.length === 0 ? chunk : Buffer.concat([this.#header, chunk]);
    if (data.length < HEADER_BYTES) {
      this.#header = data;
      return Buffer.alloc(0);
    }
    this.#header = Buffer.alloc(0);
    const bytes = data.readUInt32LE(0);
    if (bytes === 0 || bytes > this.#bytesMax) throw new ProtocolFault('the length of a frame is out of bounds');
    const end = HEADER_BYTES + bytes;
    if (data.length >= end) {
      found.push(data.subarray(HEADER_BYTES, end));
      return data.subarray(end);
    }
    // Copied into one buffer, because a list of chunks could contain one object for each byte.
    this.#body = Buffer.allocUnsafe(bytes);
    this.#filled = 0;
    return data.subarray(HEADER_BYTES);
  }

  #fill(body: Buffer, chunk: Buffer, found: Buffer[]): Buffer {
    const taken = chunk.copy(body, this.#filled);
    this.#filled += taken;
    if (this.#filled === body.length) {
      found.push(body);
      this.#body = undefined;
    }
    return chunk.subarray(taken);
  }
}

/** Whether a document may be parsed: see STRUCTURE_MAX. */
export function isParsable(document: Uint8Array): boolean {
  if (document.length <= SMALL_FRAME_BYTES) return true;
  let structure = 0;
  let inString = false;
  for (let at = 0; at < document.length; at += 1) {
    const byte = document[at];
    if (byte === QUOTE) inString = !inString;
    else if (inString) at += byte === BACKSLASH ? 1 : 0;
    else if (byte === COMMA || byte === BRACKET || byte === BRACE) structure += 1;
  }
  return structure <= STRUCTURE_MAX;
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b];
