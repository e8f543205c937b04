export type { ListedAgent } from './agents-route.ts';
export type { CorsOptions } from './cors.ts';
export type { A2AHttpServer, HttpTls, OpenHttpOptions } from './open-http.ts';
export { openHttp } from './open-http.ts';
export type { TaskAudits } from './task-audit-route.ts';
export type { ExportTask } from './task-export-route.ts';
