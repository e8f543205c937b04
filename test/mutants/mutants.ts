import { A2A_SERVER_MUTANTS } from './list/a2a-server.ts';
import { AGENT_MUTANTS } from './list/agent.ts';
import { FOLD_MUTANTS } from './list/fold.ts';
import { LOG_MUTANTS } from './list/log.ts';
import { LOG_JETSTREAM_MUTANTS } from './list/log-jetstream.ts';
import { NOTIFIER_MUTANTS } from './list/notifier.ts';
import { RELAY_MUTANTS } from './list/relay.ts';
import { SUPERVISOR_MUTANTS } from './list/supervisor.ts';
import { TASK_MUTANTS } from './list/task.ts';
import type { Mutant, PackageName } from './mutant.ts';

export const MUTANTS: Readonly<Record<PackageName, readonly Mutant[]>> = {
  task: TASK_MUTANTS,
  fold: FOLD_MUTANTS,
  log: LOG_MUTANTS,
  'log-jetstream': LOG_JETSTREAM_MUTANTS,
  relay: RELAY_MUTANTS,
  supervisor: SUPERVISOR_MUTANTS,
  agent: AGENT_MUTANTS,
  'a2a-server': A2A_SERVER_MUTANTS,
  notifier: NOTIFIER_MUTANTS,
};
