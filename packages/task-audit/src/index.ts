export type { Audit } from './audit.ts';
export { auditTask, isBalanced } from './audit.ts';
export type { InputKind, Tallies, Tally } from './tally.ts';
export { INPUT_KINDS } from './tally.ts';
export type { Percentiles, ProducerActivity, TaskTrace, VisibleEvent } from './trace.ts';
export { traceTask } from './trace.ts';
