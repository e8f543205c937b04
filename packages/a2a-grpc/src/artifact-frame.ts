import type { DescMessage } from '@bufbuild/protobuf';
import type { Artifact, Metadata, Part, StreamResponse, TaskArtifactUpdateEvent } from '@hopline/a2a';
import { FRAME_PREFIX_BYTES, writeFramePrefix } from './call-stream.ts';

/** Levels of metadata that are written here. Deeper metadata goes to the library, which applies protobuf's own limit. */
const METADATA_DEPTH_MAX = 16;
/** Maximum UTF-8 bytes of a UTF-16 unit. */
const UNIT_BYTES_MAX = 3;
/** A tag and a length. */
const FIELD_BYTES_MAX = 6;
const BUFFER_BYTES = 16 * 1024;
/** A larger buffer is not kept for the next frame. */
const BUFFER_BYTES_MAX = 1024 * 1024;

/**
 * Encodes a chunk of text directly into the bytes that the library would write. Nearly every frame is such a chunk, and the library's
 * message objects cost several times as much. Returns undefined for any other event, and for values that only the library checks or
 * repairs. `response`: the definition of a stream's result.
 */
export function artifactFrameEncoder(response: DescMessage): (event: StreamResponse) => Buffer | undefined {
  const tags = tagsOf(response);
  return event => ('artifactUpdate' in event ? new FrameWriter(tags).frame(event.artifactUpdate) : undefined);
}

type Tags = ReturnType<typeof tagsOf>;

function tagsOf(response: DescMessage) {
  const update = fieldOf(response, 'artifact_update');
  const artifact = fieldOf(update.message, 'artifact');
  const part = fieldOf(artifact.message, 'parts');
  return {
    update: update.tag,
    taskId: fieldOf(update.message, 'task_id').tag,
    contextId: fieldOf(update.message, 'context_id').tag,
    append: fieldOf(update.message, 'append').tag,
    lastChunk: fieldOf(update.message, 'last_chunk').tag,
    metadata: fieldOf(update.message, 'metadata').tag,
    artifact: artifact.tag,
    artifactId: fieldOf(artifact.message, 'artifact_id').tag,
    name: fieldOf(artifact.message, 'name').tag,
    description: fieldOf(artifact.message, 'description').tag,
    artifactMetadata: fieldOf(artifact.message, 'metadata').tag,
    extensions: fieldOf(artifact.message, 'extensions').tag,
    part: part.tag,
    text: fieldOf(part.message, 'text').tag,
    partMetadata: fieldOf(part.message, 'metadata').tag,
  };
}

/** google.protobuf.Struct, Value and ListValue, and an entry of a map. */
const ENTRIES = delimited(1);
const ENTRY_KEY = delimited(1);
const ENTRY_VALUE = delimited(2);
const VALUE_NULL = varint(1);
const VALUE_NUMBER = (2 << 3) | 1;
const VALUE_TEXT = delimited(3);
const VALUE_BOOLEAN = varint(4);
const VALUE_STRUCT = delimited(5);
const VALUE_LIST = delimited(6);
const LIST_VALUES = delimited(1);

function delimited(fieldNumber: number): number {
  return (fieldNumber << 3) | 2;
}

function varint(fieldNumber: number): number {
  return fieldNumber << 3;
}

function fieldOf(type: DescMessage, name: string): { tag: number; message: DescMessage } {
  const field = type.fields.find(one => one.name === name);
  // A greater number has a tag of two bytes.
  if (field === undefined || field.number > 15) throw new Error(`${type.typeName} has no field ${name} of 1 to 15`);
  const tag = field.fieldKind === 'scalar' && field.scalar === BOOL ? varint(field.number) : delimited(field.number);
  return { tag, message: field.message ?? type };
}

const BOOL = 8;

const UPDATE_MEMBERS = new Set(['taskId', 'contextId', 'artifact', 'append', 'lastChunk', 'metadata']);
const ARTIFACT_MEMBERS = new Set(['artifactId', 'name', 'description', 'parts', 'metadata', 'extensions']);
/** 0.3 has neither the media type nor the file name of a text. */
const PART_MEMBERS = new Set(['text', 'metadata']);

/** Shared by all frames: a frame is written in one synchronous call, and its bytes are copied. */
let buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);

/** One frame. Fields are written in the order of their numbers, as the library does. */
class FrameWriter {
  readonly #tags: Tags;
  #at = FRAME_PREFIX_BYTES;
  /** False once a part of the value needs the library. */
  #known = true;

  constructor(tags: Tags) {
    this.#tags = tags;
  }

  frame(update: TaskArtifactUpdateEvent): Buffer | undefined {
    this.#update(update);
    if (!this.#known) return undefined;
    const frame = Buffer.allocUnsafe(this.#at);
    buffer.copy(frame, 0, 0, this.#at);
    writeFramePrefix(frame);
    if (buffer.length > BUFFER_BYTES_MAX) buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
    return frame;
  }

  #update(update: TaskArtifactUpdateEvent): void {
    const { taskId, contextId, artifact, append, lastChunk, metadata } = update;
    this.#checkMembers(update, UPDATE_MEMBERS);
    const tags = this.#tags;
    const start = this.#begin(tags.update);
    this.#text(tags.taskId, taskId);
    this.#text(tags.contextId, contextId);
    this.#artifact(artifact);
    this.#flag(tags.append, append);
    this.#flag(tags.lastChunk, lastChunk);
    this.#metadata(tags.metadata, metadata);
    this.#end(start);
  }

  #artifact(artifact: Artifact): void {
    if (!this.#isPlain(artifact)) return;
    const { artifactId, name, description, parts, metadata, extensions } = artifact;
    this.#checkMembers(artifact, ARTIFACT_MEMBERS);
    const tags = this.#tags;
    const start = this.#begin(tags.artifact);
    this.#text(tags.artifactId, artifactId);
    this.#text(tags.name, name);
    this.#text(tags.description, description);
    if (Array.isArray(parts)) for (const part of parts) this.#part(part);
    else this.#known = false;
    this.#metadata(tags.artifactMetadata, metadata);
    if (extensions !== undefined) this.#known = false;
    this.#end(start);
  }

  #part(part: Part): void {
    if (!this.#isPlain(part)) return;
    this.#checkMembers(part, PART_MEMBERS);
    const { text, metadata } = part;
    const start = this.#begin(this.#tags.part);
    // A member of a oneof is written even if it is empty.
    if (typeof text === 'string') this.#string(this.#tags.text, text);
    else this.#known = false;
    this.#metadata(this.#tags.partMetadata, metadata);
    this.#end(start);
  }

  #metadata(tag: number, metadata: Metadata | undefined): void {
    if (metadata === undefined || !this.#isPlain(metadata)) return;
    // 1.0 writes empty metadata, 0.3 omits it: the library decides.
    if (Object.keys(metadata).length === 0) this.#known = false;
    this.#struct(tag, metadata, METADATA_DEPTH_MAX);
  }

  #struct(tag: number, struct: Metadata, depthLeft: number): void {
    const start = this.#begin(tag);
    for (const key of Object.keys(struct)) {
      // Left to the library, which keeps this name from changing the prototype.
      if (key === '__proto__') this.#known = false;
      const entry = this.#begin(ENTRIES);
      this.#string(ENTRY_KEY, key);
      this.#value(ENTRY_VALUE, struct[key], depthLeft - 1);
      this.#end(entry);
    }
    this.#end(start);
  }

  #value(tag: number, value: unknown, depthLeft: number): void {
    const start = this.#begin(tag);
    if (depthLeft === 0) this.#known = false;
    else if (typeof value === 'string') this.#string(VALUE_TEXT, value);
    else if (typeof value === 'number' && Number.isFinite(value)) this.#number(value);
    else if (typeof value === 'boolean') this.#byte(VALUE_BOOLEAN, value ? 1 : 0);
    else if (value === null) this.#byte(VALUE_NULL, 0);
    else if (Array.isArray(value)) {
      const list = this.#begin(VALUE_LIST);
      for (const item of value) this.#value(LIST_VALUES, item, depthLeft - 1);
      this.#end(list);
    } else if (this.#isPlain(value)) this.#struct(VALUE_STRUCT, value, depthLeft - 1);
    this.#end(start);
  }

  /** A field that is left out when it is empty. */
  #text(tag: number, text: string | undefined): void {
    if (typeof text !== 'string' && text !== undefined) this.#known = false;
    else if (text !== undefined && text !== '') this.#string(tag, text);
  }

  #flag(tag: number, value: boolean | undefined): void {
    if (value === true) this.#byte(tag, 1);
    else if (value !== undefined && value !== false) this.#known = false;
  }

  #string(tag: number, text: string): void {
    if (!text.isWellFormed()) {
      this.#known = false;
      return;
    }
    this.#reserve(text.length * UNIT_BYTES_MAX);
    const start = this.#begin(tag);
    this.#at += buffer.write(text, this.#at);
    this.#end(start);
  }

  #number(value: number): void {
    this.#reserve(1 + Float64Array.BYTES_PER_ELEMENT);
    buffer[this.#at] = VALUE_NUMBER;
    this.#at = buffer.writeDoubleLE(value, this.#at + 1);
  }

  #byte(tag: number, value: number): void {
    this.#reserve(2);
    buffer[this.#at++] = tag;
    buffer[this.#at++] = value;
  }

  /** Begins a length-delimited field, and leaves one byte free for the length. Returns where its content begins. */
  #begin(tag: number): number {
    this.#reserve(0);
    buffer[this.#at] = tag;
    this.#at += 2;
    return this.#at;
  }

  /** Writes the length. Content of 128 bytes or more is moved, because its length takes several bytes. */
  #end(start: number): void {
    const length = this.#at - start;
    if (length < 0x80) {
      buffer[start - 1] = length;
      return;
    }
    let more = 0;
    for (let rest = length >>> 7; rest > 0; rest >>>= 7) more += 1;
    this.#reserve(more);
    buffer.copyWithin(start + more, start, this.#at);
    this.#at += more;
    let rest = length;
    for (let index = start - 1; index < start - 1 + more; index += 1) {
      buffer[index] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[start - 1 + more] = rest;
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes + FIELD_BYTES_MAX;
    if (needed <= buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(needed * 2);
    buffer.copy(larger, 0, 0, this.#at);
    buffer = larger;
  }

  #isPlain(value: unknown): value is Metadata {
    const isPlain = typeof value === 'object' && value !== null && !Array.isArray(value);
    this.#known &&= isPlain;
    return isPlain;
  }

  /** The library accepts some members under two names, and ignores unknown ones. */
  #checkMembers(object: object, members: ReadonlySet<string>): void {
    for (const name of Object.keys(object)) if (!members.has(name)) this.#known = false;
  }
}
