import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A recorded stream, as far as the bench needs it: how many tokens, and which lane each belongs to. */
export type Stream = { name: string; lanes: string[] };

/** Recorded provider streams, beside the project; not part of it. */
const TRACES = join(import.meta.dirname, '../../../../shared/traces');

/** Lengths of the stand-ins: short answers, where a rule that learns has little time, and one long one. */
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
