export type { AgUiEvent } from './ag-ui-event.ts';
export { RunEncoder } from './run-encoder.ts';
export { RunInputError, type RunRequest, runRequestOf } from './run-input.ts';
