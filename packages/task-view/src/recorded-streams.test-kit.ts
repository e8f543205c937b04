import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Artifact, Fold, type StreamResponse, type Task } from '@hopline/a2a';

const FOLDER = fileURLToPath(new URL('../../../test/replay/golden/', import.meta.url));

/** The event of one cursor. */
export type RecordedEvent = { event: StreamResponse; cursor: string };

/** The streams of the recorded tasks of every kind (test/replay), by name. */
export function recordedStreams(): Map<string, RecordedEvent[]> {
  const files = globSync('*/*.hopline.jsonl', { cwd: FOLDER }).sort();
  return new Map(files.map(file => [basename(file, '.hopline.jsonl'), eventsIn(readFileSync(`${FOLDER}${file}`, 'utf8'))]));
}

function eventsIn(file: string): RecordedEvent[] {
  type Line = { kind?: string; seq?: number; record?: { facts: { generation?: number; event?: StreamResponse }[] } };
  const lines = file.split('\n').filter(line => line !== '');
  return lines.flatMap(line => {
    const { kind, seq, record } = JSON.parse(line) as Line;
    if (kind !== 'facts') return [];
    return record!.facts.flatMap(({ event, generation }) =>
      event === undefined ? [] : [{ event, cursor: `${generation}.${seq}` }],
    );
  });
}

/** The task after some events of its stream, in the form that a server sends after a gap. */
export function snapshotAfter(events: readonly RecordedEvent[]): RecordedEvent {
  const fold = new Fold();
  for (const { event } of events) fold.add(event);
  const artifacts = [...fold.artifacts.values()].map(({ text: _text, closed: _closed, ...artifact }): Artifact => artifact);
  const task: Task = { ...fold.task!, artifacts };
  return { event: { task }, cursor: events.at(-1)!.cursor };
}
