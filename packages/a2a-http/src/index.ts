export type { Limits } from './limits.ts';
export { LIMITS, serverOptions } from './limits.ts';
export type { A2AHttpOptions } from './register-a2a.ts';
export { registerA2A } from './register-a2a.ts';
