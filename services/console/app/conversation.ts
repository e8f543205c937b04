import {
  type ApprovalRequest,
  type Artifact,
  approvalRequestOf,
  codePoints,
  cutIndex,
  isObject,
  type Message,
  type Part,
  type StreamResponse,
  stateWord,
  type Task,
} from '@hopline/a2a';
import { kindOfArtifact } from '@hopline/profiles/kinds';

/** A part of the conversation as a client sees it. Blocks are immutable: a newer one replaces an older one. */
export type Block =
  | { kind: 'message'; key: string; role: 'user' | 'agent'; segments: readonly string[] }
  | { kind: 'state'; key: string; state: string; at: string | undefined; segments: readonly string[] }
  | ArtifactBlock
  | { kind: 'gap'; key: string };

export type ArtifactBlock = {
  kind: 'artifact';
  key: string;
  name: string;
  /** The meaning of the artifact for clients, as packages/task-view reads it. Undefined: part of the answer or a file. */
  role: ReturnType<typeof kindOfArtifact>;
  agent: string | undefined;
  /** Text in segments that end where a line may end. The page renders only segments that changed. */
  segments: readonly string[];
  characters: number;
  isClosed: boolean;
};

export type ConversationState = { state: string; blocks: readonly Block[] };

/** A segment is closed at the next line end after this many characters. */
const SEGMENT_CHARS = 2_000;
/** A segment without a line end is closed at a space, because the browser lays out a whole segment again when text is added to it. */
export const SEGMENT_CHARS_MAX = 4_000;
/** A state of the conversation is kept after every this many events, so that a seek folds at most as many. */
const SNAPSHOT_EVENTS = 500;

/** The conversation after each event of a task. */
export class Conversation {
  readonly #items: (StreamResponse | 'gap')[] = [];
  readonly #snapshots: ConversationState[] = [{ state: 'submitted', blocks: [] }];
  #state = '';
  #approval: ApprovalRequest | undefined;
  #history: readonly Message[] = [];
  #last: { count: number; value: ConversationState } = { count: 0, value: this.#snapshots[0]! };

  get length(): number {
    return this.#items.length;
  }

  /** State after all events. */
  get state(): string {
    return this.#state;
  }

  /** The call that the agent asks to approve, after all events. */
  get approval(): ApprovalRequest | undefined {
    return this.#approval;
  }

  add(item: StreamResponse | 'gap'): void {
    this.#items.push(item);
    if (item === 'gap') return;
    const status = 'task' in item ? item.task.status : 'statusUpdate' in item ? item.statusUpdate.status : undefined;
    if (status === undefined) return;
    this.#state = stateWord(status.state);
    this.#approval = this.#state === 'input-required' ? approvalRequestOf(status.message) : undefined;
  }

  /** Sets the messages of the task: the stream has only the client's first message. */
  setHistory(history: readonly Message[]): void {
    const isUser = ({ role }: Message) => role === 'ROLE_USER';
    const messages = history.filter(isUser);
    if (messages.length <= this.#history.length) return;
    this.#history = messages;
    this.#snapshots.length = 1;
    this.#last = { count: 0, value: this.#snapshots[0]! };
  }

  /** The conversation after the first `count` events. */
  at(count: number): ConversationState {
    const end = Math.min(count, this.#items.length);
    if (this.#last.count === end) return this.#last.value;
    const nearest = Math.min(Math.floor(end / SNAPSHOT_EVENTS), this.#snapshots.length - 1) * SNAPSHOT_EVENTS;
    const isAhead = this.#last.count <= end && this.#last.count >= nearest;
    let index = isAhead ? this.#last.count : nearest;
    const from = isAhead ? this.#last.value : this.#snapshots[nearest / SNAPSHOT_EVENTS]!;
    const fold = new BlockFold(from, this.#history);
    for (; index < end; index += 1) {
      fold.add(this.#items[index]!, index);
      const done = index + 1;
      if (done % SNAPSHOT_EVENTS === 0 && done / SNAPSHOT_EVENTS === this.#snapshots.length) this.#snapshots.push(fold.value());
    }
    this.#last = { count: end, value: fold.value() };
    return this.#last.value;
  }
}

class BlockFold {
  #state: string;
  readonly #blocks: Block[];
  readonly #places = new Map<string, number>();
  readonly #history: readonly Message[];
  #userMessages: number;

  constructor({ state, blocks }: ConversationState, history: readonly Message[]) {
    this.#state = state;
    this.#blocks = [...blocks];
    this.#history = history;
    for (const [index, block] of blocks.entries()) if (block.kind === 'artifact') this.#places.set(block.key, index);
    this.#userMessages = blocks.filter(block => block.kind === 'message' && block.role === 'user').length;
  }

  value(): ConversationState {
    return { state: this.#state, blocks: [...this.#blocks] };
  }

  add(item: StreamResponse | 'gap', index: number): void {
    if (item === 'gap') this.#blocks.push({ kind: 'gap', key: `gap-${index}` });
    else if ('task' in item) this.#snapshot(item.task, index);
    else if ('message' in item) this.#message(item.message, index);
    else if ('statusUpdate' in item) this.#status(item.statusUpdate.status, index);
    else
      this.#artifact(item.artifactUpdate.artifact, item.artifactUpdate.append === true, item.artifactUpdate.lastChunk === true);
  }

  /** The current task as a whole, which is the first event and the event after a gap. It contains everything so far. */
  #snapshot({ status, artifacts = [], history = [] }: Task, index: number): void {
    if (index > 0) {
      this.#blocks.splice(0, this.#blocks.length, ...this.#blocks.filter(({ kind }) => kind === 'gap'));
      this.#places.clear();
      this.#userMessages = 0;
    }
    for (const [at, message] of history.entries()) this.#message(message, index + at / 1_000);
    for (const artifact of artifacts) this.#artifact(artifact, false, false);
    this.#state = stateWord(status.state);
    if (index > 0) this.#status(status, index);
  }

  #status(status: Task['status'], index: number): void {
    const state = stateWord(status.state);
    // The client's answer begins the next turn, and its event is not in the stream.
    const answered = /required$/.test(this.#state) && state === 'working' ? this.#history[this.#userMessages] : undefined;
    if (answered !== undefined) this.#message(answered, index - 0.5);
    this.#state = state;
    const segments = status.message === undefined ? [] : appended([], textOfParts(status.message.parts));
    this.#blocks.push({ kind: 'state', key: `state-${index}`, state, at: status.timestamp, segments });
  }

  #message({ role, parts }: Message, index: number): void {
    const isUser = role === 'ROLE_USER';
    if (isUser) this.#userMessages += 1;
    const segments = appended([], textOfParts(parts));
    this.#blocks.push({ kind: 'message', key: `message-${index}`, role: isUser ? 'user' : 'agent', segments });
  }

  #artifact({ artifactId, name = 'artifact', metadata, parts }: Artifact, isAppend: boolean, isClosed: boolean): void {
    const place = this.#places.get(artifactId);
    const known = place === undefined ? undefined : (this.#blocks[place] as ArtifactBlock);
    const agent = typeof metadata?.sourceAgent === 'string' ? metadata.sourceAgent : known?.agent;
    const text = textOfParts(parts);
    const [segments, characters] = isAppend && known !== undefined ? [known.segments, known.characters] : [[], 0];
    const block: ArtifactBlock = {
      kind: 'artifact',
      key: artifactId,
      name,
      agent,
      isClosed,
      role: kindOfArtifact({ name, ...(metadata && { metadata }) }) ?? known?.role,
      segments: appended(segments, text),
      characters: characters + codePoints(text),
    };
    if (place === undefined) this.#places.set(artifactId, this.#blocks.push(block) - 1);
    else this.#blocks[place] = block;
  }
}

/** Splits a text into segments for blocks. */
export const segmentsOf = (text: string): readonly string[] => appended([], text);

/** `segments` with more text added. Complete segments stay the same strings. */
function appended(segments: readonly string[], text: string): readonly string[] {
  if (text === '') return segments;
  const last = segments.at(-1) ?? '';
  const isComplete = segmentEnd(last) === last.length;
  const before = isComplete || segments.length === 0 ? segments : segments.slice(0, -1);
  const added: string[] = [];
  let rest = isComplete ? text : last + text;
  for (let end = segmentEnd(rest); end !== undefined && rest !== ''; end = segmentEnd(rest)) {
    added.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  if (rest !== '') added.push(rest);
  return [...before, ...added];
}

/** End of the first segment of a text; undefined while more text may belong to it. */
function segmentEnd(text: string): number | undefined {
  if (text.length < SEGMENT_CHARS) return undefined;
  const lineEnd = text.indexOf('\n', SEGMENT_CHARS - 1);
  if (lineEnd >= 0 && lineEnd < SEGMENT_CHARS_MAX) return lineEnd + 1;
  if (text.length < SEGMENT_CHARS_MAX) return undefined;
  const space = text.lastIndexOf(' ', SEGMENT_CHARS_MAX - 1);
  return space >= SEGMENT_CHARS ? space + 1 : cutIndex(text, SEGMENT_CHARS_MAX);
}

/** The text of parts. Parts other than text are shown by name, never opened. */
export function textOfParts(parts: readonly Part[]): string {
  const hasText = parts.some(({ text = '' }) => text !== '');
  // The text of an answer to an approval has the meaning of its data.
  const isRepeated = ({ data }: Part) => hasText && isObject(data) && 'approvalResponse' in data;
  return parts.map(part => (isRepeated(part) ? '' : textOfPart(part))).join('');
}

function fenced(data: unknown): string {
  return `\`\`\`json\n${JSON.stringify(data, null, 2)}\n\`\`\`\n`;
}

function textOfPart(part: Part): string {
  if (part.text !== undefined) return part.text;
  const { data, ...file } = part as Record<string, unknown>;
  const approval = approvalRequestOf({ parts: [part] });
  if (approval !== undefined) return `\n\n${fenced({ tool: approval.tool, arguments: approval.arguments })}`;
  // A line of indented JSON never begins with a fence.
  if (data !== undefined) return fenced(data);
  const { filename = '', mediaType = 'unknown type' } = file;
  return `[file ${filename} (${mediaType})]\n`;
}
