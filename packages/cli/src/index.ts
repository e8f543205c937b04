export { apiKeyHeader, credentialsOf } from './credentials.ts';
export type { Display } from './display.ts';
export { noticePrinter, withoutControls } from './display.ts';
export { hasColors, type Sink } from './output.ts';
export { ownCommand, shellQuoted } from './own-command.ts';
export { type ProcessState, processState } from './process-state.ts';
export type { CommandLogins, ListedProcess, RunFile } from './running-cluster.ts';
export { COMMAND_USERS, NATS_USERS_FILE, runningCluster } from './running-cluster.ts';
export { StreamPrinter } from './stream-printer.ts';
