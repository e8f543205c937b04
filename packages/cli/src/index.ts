export type { Display } from './display.ts';
export { noticePrinter, withoutControls } from './display.ts';
export { type ProcessState, processState } from './process-state.ts';
export type { ListedProcess, RunFile } from './running-cluster.ts';
export { StreamPrinter } from './stream-printer.ts';
