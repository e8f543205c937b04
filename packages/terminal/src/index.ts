export { ArtifactFolder, safeFileName } from './artifact-folder.ts';
export { besideJson, type Display, noticePrinter, withoutControls } from './display.ts';
export { hasColors, Output, type Sink } from './output.ts';
export { type PrinterOptions, StreamPrinter } from './stream-printer.ts';
export { layOut, wrap } from './wrap.ts';
