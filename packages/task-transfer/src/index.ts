export type { ExportOptions, TaskExport } from './export-task.ts';
export { exportTask } from './export-task.ts';
