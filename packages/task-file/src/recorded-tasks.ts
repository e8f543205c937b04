import type { FactRecord, InputRecord, TraceCarrier, Writer } from '@hopline/events';
import type { TaskEntry, TaskHeader } from './format.ts';

/** A record of inputs of a task file, as the log returns it. */
type FileInputRecord = {
  seq: number;
  taskId: string;
  storedAt: number;
  writer: Writer;
  record: InputRecord;
  /** 0: the file does not have the size of the stored record. */
  bytes: 0;
  trace?: TraceCarrier;
};

/** A record of facts of a task file, as the log returns it. */
export type FileFactRecord = { seq: number; storedAt: number; record: FactRecord; trace?: TraceCarrier };

/** A task of a file with all of its records. */
export type RecordedTask = { header: TaskHeader; facts: FileFactRecord[]; inputs: FileInputRecord[] };

/**
 * Collects the entries of a task file (`readTaskFile`) into tasks. Each task is yielded at its end, so a truncated task is never yielded.
 * `onHeader` is called at its beginning.
 */
export async function* recordedTasks(
  entries: AsyncIterable<TaskEntry>,
  onHeader: (header: TaskHeader) => void = () => {},
): AsyncGenerator<RecordedTask, void> {
  let task: RecordedTask | undefined;
  for await (const entry of entries) {
    if (entry.kind === 'header') {
      task = { header: entry.header, facts: [], inputs: [] };
      onHeader(entry.header);
    } else if (entry.kind === 'input') {
      const { kind: _kind, ...input } = entry;
      task!.inputs.push({ ...input, taskId: task!.header.taskId, bytes: 0 });
    } else if (entry.kind === 'facts') {
      const { kind: _kind, generation: _generation, ...stored } = entry;
      task!.facts.push(stored);
    } else {
      yield task!;
    }
  }
}
