import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A recorded stream: its number of tokens, and the lane of each. */
export type Stream = { name: string; lanes: string[] };

/** Recorded provider streams; they are not part of the project. */
const TRACES = join(import.meta.dirname, '../../../../shared/traces');

/** Lengths of synthetic streams: short answers, where a learning rule has little time, and a long one. */
const SHAPES: Readonly<Record<string, number>> = {
  'shape of 60': 60,
  'shape of 300': 300,
  'shape of 600': 600,
  'shape of 2000': 2000,
};

export function recordedStreams(): Stream[] {
  if (!existsSync(TRACES)) return [];
  const files = readdirSync(TRACES).filter(file => file.endsWith('.deltas.jsonl'));
  return files
    .sort()
    .map(file => ({ name: file.replace('.deltas.jsonl', ''), lanes: lanesOf(readFileSync(join(TRACES, file), 'utf8')) }));
}

export function shapedStreams(): Stream[] {
  return Object.entries(SHAPES).map(([name, length]) => ({ name, lanes: Array.from({ length }, () => 'text') }));
}

/** Text, reasoning and tool arguments of one stream are three lanes. */
function lanesOf(jsonl: string): string[] {
  const lines = jsonl.split('\n').filter(line => line !== '');
  return lines.map(line => (JSON.parse(line) as { k: string }).k);
}
