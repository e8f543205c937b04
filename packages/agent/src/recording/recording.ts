import { readFile, stat } from 'node:fs/promises';

/** Largest recording, which is held in memory for the life of the agent. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;
/** Maximum tokens of one recording. */
export const TOKENS_MAX = 1_000_000;
/** Latest time of a token, from the start of the recording. */
export const OFFSET_MS_MAX = 24 * 60 * 60 * 1000;

export type Recording = {
  tokens: string[];
  /** Milliseconds after the start at which each token arrived. Absent unless every text line has `ms`. */
  offsetsMs?: number[];
};

/** The file cannot be played. The message names the file and line, never its content. */
export class RecordingError extends Error {
  override readonly name = 'RecordingError';
}

type Line = { t: string; k?: string; ms?: number };

/** Reads and checks a recording. Rejects with RecordingError if it is missing or too large, or if a line is not `{"t":…}`. */
export async function loadRecording(path: string): Promise<Recording> {
  const size = await stat(path).then(
    found => (found.isFile() ? found.size : -1),
    () => -1,
  );
  if (size < 0) throw new RecordingError(`recording ${path} does not exist`);
  if (size > FILE_BYTES_MAX) throw new RecordingError(`recording ${path} has ${size} bytes, more than ${FILE_BYTES_MAX}`);
  const content = await readFile(path, 'utf8');
  return parseRecording(content, path);
}

/** `name` is used in errors. Lines with a `k` other than `text` (reasoning, tool arguments) are not part of the answer and are skipped. */
export function parseRecording(content: string, name: string): Recording {
  const tokens: string[] = [];
  const offsetsMs: number[] = [];
  let ordinal = 0;
  for (const raw of content.split('\n')) {
    ordinal += 1;
    if (raw.trim() === '') continue;
    const line = parseLine(raw, `${name}, line ${ordinal}`);
    if (line.k !== undefined && line.k !== 'text') continue;
    if (tokens.length === TOKENS_MAX) throw new RecordingError(`recording ${name} has more than ${TOKENS_MAX} tokens`);
    tokens.push(line.t);
    if (line.ms === undefined) continue;
    if (line.ms < (offsetsMs.at(-1) ?? 0)) throw new RecordingError(`recording ${name}, line ${ordinal}: ms goes back in time`);
    offsetsMs.push(line.ms);
  }
  if (tokens.length === 0) throw new RecordingError(`recording ${name} has no text`);
  return offsetsMs.length === tokens.length ? { tokens, offsetsMs } : { tokens };
}

function parseLine(raw: string, where: string): Line {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    throw new RecordingError(`recording ${where}: not JSON`);
  }
  if (typeof value !== 'object' || value === null) throw new RecordingError(`recording ${where}: not an object`);
  const { t, k, ms } = value as Record<string, unknown>;
  if (typeof t !== 'string') throw new RecordingError(`recording ${where}: "t" must be a string`);
  if (k !== undefined && typeof k !== 'string') throw new RecordingError(`recording ${where}: "k" must be a string`);
  if (ms === undefined) return k === undefined ? { t } : { t, k };
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= OFFSET_MS_MAX)) {
    throw new RecordingError(`recording ${where}: "ms" must be a number from 0 to ${OFFSET_MS_MAX}`);
  }
  return k === undefined ? { t, ms } : { t, k, ms };
}
