export type { ErasedTask } from './erase-task.ts';
export { EraseDenied, EraseRefused, eraseTask } from './erase-task.ts';
export type { ExportOptions, TaskExport } from './export-task.ts';
export { exportTask } from './export-task.ts';
export type { ImportedTask, ImportOptions } from './import-tasks.ts';
export { checkImport, ImportRefused, importTasks } from './import-tasks.ts';
export type { Binding } from './rebind-record.ts';
export { rebindRecord } from './rebind-record.ts';
