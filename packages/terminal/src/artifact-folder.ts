import { mkdirSync, writeFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import type { Part } from '@hopline/a2a';

/** Maximum files that one command writes, so that an agent cannot fill the folder: as many as one turn of a Hopline agent may make. */
const FILES_MAX = 1_000;
/** Longest file name in UTF-8 bytes. File systems allow 255, and a suffix may follow. */
const FILE_NAME_BYTES_MAX = 120;
/** UTF-16 units that are read at the beginning and the end of a name, because an agent chooses its length. */
const NAME_CHARS_READ_MAX = 1_024;
/** Maximum names that are tried if files already exist: `card.md`, `card-2.md`, … */
const SUFFIX_MAX = 1_000;

/** The folder of `--out`, in which artifacts become files. They are never written outside it and never replace a file. */
export class ArtifactFolder {
  readonly #folder: string;
  readonly #filesMax: number;
  #files = 0;
  #failed = false;

  /** Creates the folder. Throws the error of the file system when that is impossible. */
  constructor(folder: string, filesMax = FILES_MAX) {
    this.#folder = folder;
    this.#filesMax = filesMax;
    mkdirSync(folder, { recursive: true });
  }

  /** An artifact was not saved. */
  get failed(): boolean {
    return this.#failed;
  }

  fail(): void {
    this.#failed = true;
  }

  /**
   * Writes the content of an artifact. Parts with their own file name become separate files. Neighbors with the same name are chunks of one
   * file, because no agent sends a large file in one event. Links are not fetched.
   */
  save(name: string, parts: readonly Part[]): { paths: string[] } | { problem: string } {
    const named = parts.filter(part => part.filename !== undefined && part.url === undefined);
    const others = parts.filter(part => part.filename === undefined && part.url === undefined);
    const files = chunksOf(named).map(chunks => ({ name: chunks[0]!.filename!, content: contentOf(chunks) }));
    const isData = others.length > 0 && others.every(({ data }) => data !== undefined);
    if (others.length > 0)
      files.push({ name: isData && extname(name) === '' ? `${name}.json` : name, content: contentOf(others) });
    if (this.#files + files.length > this.#filesMax) return { problem: `${this.#filesMax} files are saved already` };
    this.#files += files.length;
    try {
      return { paths: files.map(file => this.#write(safeFileName(file.name), file.content)) };
    } catch (thrown) {
      return { problem: `the file cannot be written (${codeOf(thrown) ?? 'unknown error'})` };
    }
  }

  #write(name: string, content: Uint8Array): string {
    const extension = extname(name);
    const stem = name.slice(0, name.length - extension.length);
    for (let n = 1; ; n += 1) {
      const path = join(this.#folder, n === 1 ? name : `${stem}-${n}${extension}`);
      try {
        // Opened exclusively: this neither replaces a file nor follows a link.
        writeFileSync(path, content, { flag: 'wx' });
        return path;
      } catch (thrown) {
        if (codeOf(thrown) !== 'EEXIST' || n === SUFFIX_MAX) throw thrown;
      }
    }
  }
}

function codeOf(thrown: unknown): string | undefined {
  return (thrown as NodeJS.ErrnoException).code;
}

/** The last segment of a path, with only characters that every file system accepts; never `.` or `..`, nor a hidden file. */
export function safeFileName(name: string): string {
  const segment = name.split(/[\\/]/).findLast(part => /[^.\s]/.test(part)) ?? '';
  const isLong = segment.length > NAME_CHARS_READ_MAX;
  const half = NAME_CHARS_READ_MAX / 2;
  const clean = (isLong ? segment.slice(0, half) + segment.slice(-half) : segment)
    .replaceAll(/[\p{C}<>:"|?*]/gu, '_')
    .replace(/^[.\s]+/, '')
    .replace(/[.\s]+$/, '');
  if (clean === '') return 'artifact';
  const extension = extname(clean);
  const kept = extension.length > 16 ? '' : extension;
  let stem = clean.slice(0, clean.length - kept.length);
  while (Buffer.byteLength(stem + kept) > FILE_NAME_BYTES_MAX) stem = [...stem].slice(0, -1).join('');
  // Names of devices on Windows, with any extension.
  return /^(?:con|prn|aux|nul|com\d|lpt\d)$/i.test(stem.split('.')[0]!) ? `_${stem}${kept}` : stem + kept;
}

/** Groups neighbors that have the same file name and type. */
function chunksOf(parts: readonly Part[]): Part[][] {
  const files: Part[][] = [];
  for (const part of parts) {
    const before = files.at(-1)?.[0];
    if (before?.filename === part.filename && before?.mediaType === part.mediaType) files.at(-1)!.push(part);
    else files.push([part]);
  }
  return files;
}

function contentOf(parts: readonly Part[]): Uint8Array {
  return Buffer.concat(
    parts.map(({ text, raw, data }) => {
      if (text !== undefined) return Buffer.from(text);
      return raw === undefined ? Buffer.from(`${JSON.stringify(data, undefined, 2)}\n`) : Buffer.from(raw, 'base64');
    }),
  );
}
