export type {
  FactsEntry,
  InputEntry,
  RecordEntry,
  RecordKind,
  Redaction,
  TaskEnd,
  TaskEntry,
  TaskFileFault,
  TaskHeader,
  TaskProgress,
} from './format.ts';
export { LINE_BYTES_MAX, TASK_FORMAT, TASK_FORMAT_VERSION, TaskFileError } from './format.ts';
export type { ReadOptions, ResumePoint, Upcast } from './read-task-file.ts';
export { decodeProgress, encodeProgress, findResumePoint, readTaskFile } from './read-task-file.ts';
export { type RecordedTask, recordedTasks } from './recorded-tasks.ts';
export { Redactor } from './redactor.ts';
export { withheldFromOwner } from './withheld.ts';
export type { WriteOptions } from './write-task.ts';
export { inOrderOfTime, TaskWriter, writeTask } from './write-task.ts';
