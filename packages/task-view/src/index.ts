export { changesOf } from './changes-of.ts';
export type { ClientView, ViewFile, ViewQuestion, ViewText, ViewTool, ViewUsage } from './client-view.ts';
export { statusTimeOf } from './status-time.ts';
export type { TextLabel, ViewChange } from './view-change.ts';
export { FILE_BYTES_MAX } from './view-files.ts';
export { ViewFold, type ViewFoldOptions, type ViewItem } from './view-fold.ts';
