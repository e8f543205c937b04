import type { Artifact, Part } from '@hopline/a2a/client';
import type { ViewFile } from './client-view.ts';
import type { ViewChange } from './view-change.ts';
import { agentOf } from './view-tools.ts';

/** Maximum bytes of content of all files of a task that a view keeps. Content beyond that is only counted. */
export const FILE_BYTES_MAX = 64 * 1024 * 1024;

type FileState = {
  file: Omit<ViewFile, 'parts'>;
  parts: Part[] /** Bytes of `parts`. */;
  kept: number;
  shown: ViewFile | undefined;
};

type HowUpdated = { isReplacement: boolean /** False: the stream began within the artifact. */; hasBeginning: boolean };

/** The artifacts other than the answer. Each is reported once, when it is complete. */
export class ViewFiles {
  readonly #files = new Map<string, FileState>();
  readonly #changes: (change: ViewChange) => void;
  readonly #bytesMax: number;
  #kept = 0;
  #list: readonly ViewFile[] | undefined;

  constructor(changes: (change: ViewChange) => void, bytesMax: number) {
    this.#changes = changes;
    this.#bytesMax = bytesMax;
  }

  get list(): readonly ViewFile[] {
    this.#list ??= [...this.#files.values()].map(shownOf);
    return this.#list;
  }

  update(artifact: Artifact, turn: number, parts: readonly Part[], { isReplacement, hasBeginning }: HowUpdated): void {
    const known = this.#files.get(artifact.artifactId);
    if (known === undefined && parts.length === 0) return;
    const state = known ?? this.#open(artifact, turn, hasBeginning);
    const { file } = state;
    if (isReplacement) {
      this.#drop(state);
      Object.assign(file, { bytes: 0, missing: undefined });
    }
    file.isComplete = false;
    const bytes = parts.reduce((sum, part) => sum + bytesOf(part), 0);
    file.bytes += bytes;
    if (this.#kept + bytes > this.#bytesMax) {
      file.missing ??= 'excess';
      this.#drop(state);
    } else if (file.missing !== 'excess') {
      pushParts(state.parts, parts);
      state.kept += bytes;
      this.#kept += bytes;
    }
    this.#touch(state);
  }

  /** The whole artifact so far, from a snapshot of the task. If it was already reported, it is not reported again. */
  snapshot(artifact: Artifact, turn: number, parts: readonly Part[]): void {
    if (this.#files.get(artifact.artifactId)?.file.isComplete === true) return;
    this.update(artifact, turn, parts, { isReplacement: true, hasBeginning: true });
  }

  keepOnly(ids: ReadonlySet<string>): void {
    for (const [id, state] of this.#files) {
      if (ids.has(id)) continue;
      this.#drop(state);
      this.#files.delete(id);
    }
    this.#list = undefined;
  }

  end(id: string): void {
    const state = this.#files.get(id);
    if (state === undefined || state.file.isComplete) return;
    state.file.isComplete = true;
    this.#touch(state);
    this.#changes({ kind: 'file', file: shownOf(state) });
  }

  endAll(): void {
    for (const id of this.#files.keys()) this.end(id);
  }

  /** Drops the content of a file. */
  forget(id: string): void {
    const state = this.#files.get(id);
    if (state === undefined) return;
    this.#drop(state);
    this.#touch(state);
  }

  #open(artifact: Artifact, turn: number, hasBeginning: boolean): FileState {
    const { artifactId: id, name, description } = artifact;
    const file: FileState['file'] = {
      ...{ id, name, description, agent: agentOf(artifact), turn, bytes: 0, isComplete: false },
      missing: hasBeginning ? undefined : 'beginning',
    };
    const state: FileState = { file, parts: [], kept: 0, shown: undefined };
    this.#files.set(id, state);
    return state;
  }

  #drop(state: FileState): void {
    this.#kept -= state.kept;
    Object.assign(state, { parts: [], kept: 0 });
  }

  #touch(state: FileState): void {
    state.shown = undefined;
    this.#list = undefined;
  }
}

function shownOf(state: FileState): ViewFile {
  state.shown ??= { ...state.file, parts: [...state.parts] };
  return state.shown;
}

/** Appends parts in place; text without other members continues the text before it. */
function pushParts(parts: Part[], more: readonly Part[]): void {
  for (const part of more) {
    const last = parts.at(-1);
    if (last !== undefined && isTextOnly(last) && isTextOnly(part)) parts[parts.length - 1] = { text: last.text + part.text };
    else parts.push(part);
  }
}

function isTextOnly(part: Part): part is { text: string } {
  return part.text !== undefined && Object.keys(part).length === 1;
}

const UTF8 = new TextEncoder();

/** Bytes of the content of a part; a link has none. */
function bytesOf({ text, raw, data }: Part): number {
  if (text !== undefined) return UTF8.encode(text).length;
  // Base64 has four characters for three bytes, without its padding.
  if (raw !== undefined) return Math.floor(((raw.length - paddingOf(raw)) * 3) / 4);
  return data === undefined ? 0 : UTF8.encode(JSON.stringify(data)).length;
}

function paddingOf(raw: string): number {
  if (raw.endsWith('==')) return 2;
  return raw.endsWith('=') ? 1 : 0;
}
