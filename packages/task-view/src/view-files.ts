import type { Artifact, Part } from '@hopline/a2a';
import type { ViewFile } from './client-view.ts';
import type { ViewChange } from './view-change.ts';
import { agentOf } from './view-tools.ts';

type FileState = { file: Omit<ViewFile, 'parts'>; parts: Part[]; shown: ViewFile | undefined };

/** The artifacts beside the answer. Each is reported once, when it is complete. */
export class ViewFiles {
  readonly #files = new Map<string, FileState>();
  readonly #changes: (change: ViewChange) => void;
  #list: readonly ViewFile[] | undefined;

  constructor(changes: (change: ViewChange) => void) {
    this.#changes = changes;
  }

  get list(): readonly ViewFile[] {
    this.#list ??= [...this.#files.values()].map(shownOf);
    return this.#list;
  }

  update(artifact: Artifact, turn: number, parts: readonly Part[], isReplacement: boolean): void {
    const known = this.#files.get(artifact.artifactId);
    if (known === undefined && parts.length === 0) return;
    const state = known ?? this.#open(artifact, turn);
    if (isReplacement) state.parts = [];
    state.file.isComplete = false;
    pushParts(state.parts, parts);
    this.#touch(state);
  }

  /** The whole artifact so far, from a snapshot of the task. One that was reported is not reported again. */
  snapshot(artifact: Artifact, turn: number, parts: readonly Part[]): void {
    if (this.#files.get(artifact.artifactId)?.file.isComplete !== true) this.update(artifact, turn, parts, true);
  }

  keepOnly(ids: ReadonlySet<string>): void {
    for (const id of this.#files.keys()) if (!ids.has(id)) this.#files.delete(id);
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

  #open(artifact: Artifact, turn: number): FileState {
    const { artifactId: id, name, description } = artifact;
    const file = { id, name, description, agent: agentOf(artifact), turn, isComplete: false };
    const state: FileState = { file, parts: [], shown: undefined };
    this.#files.set(id, state);
    return state;
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
