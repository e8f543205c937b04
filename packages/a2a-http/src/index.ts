export type { ListedAgent } from './agents-route.ts';
export type { CorsOptions } from './cors.ts';
export { Cors } from './cors.ts';
export type { A2AHttpOptions } from './register-a2a.ts';
export { registerA2A } from './register-a2a.ts';
export { serverOptions } from './server-options.ts';
