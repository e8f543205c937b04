export type { Audit } from './audit.ts';
export { auditTask, isBalanced } from './audit.ts';
export type { InputKind, Tallies, Tally } from './tally.ts';
export { INPUT_KINDS } from './tally.ts';
