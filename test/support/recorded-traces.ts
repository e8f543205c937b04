import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Recorded token streams of real providers; they are not part of the project. */
const FOLDER = fileURLToPath(new URL('../../../shared/traces/', import.meta.url));

export type Trace = {
  file: string;
  tokens: string[];
  /** All deltas: `text`, `reasoning`, `tool_args`. */
  deltas: { k: string; t: string }[];
  sha256: string;
};

type ManifestEntry = { file: string; text_sha256: string };

/** The text tokens of each stream; undefined when the folder is absent, and tests are skipped. */
export function readTraces(): Trace[] | undefined {
  if (!existsSync(`${FOLDER}MANIFEST.json`)) return undefined;
  const manifest: ManifestEntry[] = JSON.parse(readFileSync(`${FOLDER}MANIFEST.json`, 'utf8'));
  return manifest.map(({ file, text_sha256 }) => {
    const lines = readFileSync(`${FOLDER}${file}`, 'utf8')
      .split('\n')
      .filter(line => line !== '');
    const deltas = lines.map(line => JSON.parse(line) as { k: string; t: string });
    return { file, tokens: deltas.filter(delta => delta.k === 'text').map(delta => delta.t), deltas, sha256: text_sha256 };
  });
}

export const TRACES_ABSENT = 'the recorded provider streams (../shared/traces beside the project) are absent';
