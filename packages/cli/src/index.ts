export type { Display } from './display.ts';
export { noticePrinter, withoutControls } from './display.ts';
export { StreamPrinter } from './stream-printer.ts';
