export type {
  FactsEntry,
  InputEntry,
  RecordEntry,
  RecordKind,
  TaskEnd,
  TaskEntry,
  TaskFileFault,
  TaskHeader,
} from './format.ts';
export { TASK_FILE_SUFFIX, TASK_FORMAT, TASK_FORMAT_VERSION, TaskFileError } from './format.ts';
export type { ReadOptions, ResumePoint, TaskProgress, Upcast } from './read-task-file.ts';
export { findResumePoint, readTaskFile } from './read-task-file.ts';
export type { WriteOptions } from './write-task.ts';
export { inOrderOfTime, writeTask } from './write-task.ts';
