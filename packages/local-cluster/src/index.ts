export { type AgentTaskAudit, agentTasks } from './agent-tasks.ts';
export { apiKeyHeader, credentialsOf } from './credentials.ts';
export { EnvironmentError } from './environment-error.ts';
export { freePort } from './free-port.ts';
export {
  isKillAnswer,
  isKillRequest,
  isLauncherHello,
  type KillAnswer,
  type KillRequest,
  type LauncherHello,
} from './launcher-messages.ts';
export { commandLineFor, type LocalCommand, localCommand, shellQuoted, URL_DEFAULT } from './local-command.ts';
export { MetricsText } from './metrics-text.ts';
export { OBSERVE_FILE, type ObserveFile, observedAt } from './observe-file.ts';
export { isAlive, type ProcessState, processState } from './process-state.ts';
export type { CommandLogins, ListedProcess, LogLocation, RunFile } from './running-cluster.ts';
export { COMMAND_USERS, logSettingsOf, logsFolder, NATS_USERS_FILE, runningCluster } from './running-cluster.ts';
export type { ReadProcess, TopAgent, TopCluster, TopProcess, TopReading, TopSnapshot } from './top-snapshot.ts';
export { readCluster, snapshotOf } from './top-snapshot.ts';
