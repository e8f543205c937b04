import type { Artifact, Part, TaskArtifactUpdateEvent } from '@hopline/a2a';
import type { ArtifactFolder } from './artifact-folder.ts';
import type { Display } from './display.ts';

/** Bytes of unfinished artifacts that are kept in memory to be saved. */
const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Longest name in a line. */
const NAME_CHARS_MAX = 200;

type OpenArtifact = {
  name: string;
  parts: Part[];
  bytes: number;
  /** Why the content is incomplete. Undefined: it is complete. */
  incomplete: string | undefined;
};

/**
 * Artifacts outside the answer: files, data, reports. Each is joined from its chunks and reported in one line when it is complete; with a
 * folder it is also saved.
 */
export class NamedArtifacts {
  readonly #display: Pick<Display, 'artifact' | 'note' | 'warn'>;
  readonly #folder: ArtifactFolder | undefined;
  readonly #keptBytesMax: number;
  readonly #open = new Map<string, OpenArtifact>();
  readonly #reported = new Set<string>();
  #keptBytes = 0;
  #count = 0;

  constructor(display: Pick<Display, 'artifact' | 'note' | 'warn'>, folder?: ArtifactFolder, keptBytesMax = KEPT_BYTES_MAX) {
    this.#display = display;
    this.#folder = folder;
    this.#keptBytesMax = keptBytesMax;
  }

  /** Number of these artifacts in this part of the stream. */
  get count(): number {
    return this.#count;
  }

  update({ artifact, append = false, lastChunk = false }: TaskArtifactUpdateEvent): void {
    const { artifactId, name = artifactId, parts } = artifact;
    const existing = this.#open.get(artifactId);
    if (existing !== undefined && !append) this.#release(existing);
    const begun = append ? existing : undefined;
    const incomplete = append && begun === undefined ? 'it begins before this part of the stream' : undefined;
    const open = begun ?? { name, parts: [], bytes: 0, incomplete };
    this.#open.set(artifactId, open);
    this.#keep(open, parts);
    if (lastChunk) this.#report(artifactId, open);
  }

  /** The artifacts of a complete task: those that were not reported before. */
  snapshot(artifacts: readonly Artifact[]): void {
    for (const artifact of artifacts.filter(({ artifactId }) => !this.#reported.has(artifactId)))
      this.update({ taskId: '', contextId: '', artifact, append: false, lastChunk: false });
  }

  /** Ignores artifacts of earlier turns from now on. */
  skip(artifacts: readonly Artifact[]): void {
    for (const { artifactId } of artifacts) this.#reported.add(artifactId);
  }

  /** The turn has ended: open artifacts get no more chunks. */
  end(): void {
    for (const [id, open] of this.#open) this.#report(id, open);
  }

  #keep(open: OpenArtifact, parts: readonly Part[]): void {
    const bytes = parts.reduce((sum, part) => sum + bytesOf(part), 0);
    open.bytes += bytes;
    // An event may have more parts than a call may have arguments.
    if (this.#folder === undefined) for (const { url } of parts) open.parts.push({ ...(url !== undefined && { url }) });
    else if (open.incomplete === undefined && this.#keptBytes + bytes <= this.#keptBytesMax) {
      for (const part of parts) open.parts.push(part);
      this.#keptBytes += bytes;
    } else {
      open.incomplete ??= `more than ${this.#keptBytesMax} bytes are not kept`;
      this.#release(open);
    }
  }

  #release(open: OpenArtifact): void {
    if (this.#folder !== undefined) this.#keptBytes -= open.parts.reduce((sum, part) => sum + bytesOf(part), 0);
    open.parts = [];
  }

  #report(id: string, open: OpenArtifact): void {
    this.#open.delete(id);
    this.#reported.add(id);
    this.#count += 1;
    const shown = open.name.replaceAll(/\s+/g, ' ').slice(0, NAME_CHARS_MAX);
    const urls = open.parts.flatMap(({ url }) => (url === undefined ? [] : [url]));
    const size = `${open.bytes} ${open.bytes === 1 ? 'byte' : 'bytes'}`;
    const line = [shown, ...(urls.length > 0 && open.bytes === 0 ? [] : [size]), ...urls].join(', ');
    this.#line(`${line}${this.#saved(open)}`);
    this.#release(open);
  }

  #saved(open: OpenArtifact): string {
    if (this.#folder === undefined) return '';
    if (open.incomplete !== undefined) return this.#notSaved(open.incomplete);
    const saved = this.#folder.save(open.name, open.parts);
    if ('problem' in saved) return this.#notSaved(saved.problem);
    return saved.paths.length === 0 ? '' : ` -> ${saved.paths.join(', ')}`;
  }

  #notSaved(problem: string): string {
    this.#folder?.fail();
    return `: not saved, ${problem}`;
  }

  #line(text: string): void {
    if (this.#display.artifact === undefined) this.#display.note(text);
    else this.#display.artifact(text);
  }
}

/** Bytes of the content of a part; a link has none. */
function bytesOf({ text, raw, data }: Part): number {
  if (text !== undefined) return Buffer.byteLength(text);
  if (raw !== undefined) return Buffer.byteLength(raw, 'base64');
  return data === undefined ? 0 : Buffer.byteLength(JSON.stringify(data));
}
