import type { SourceEdit } from '../support/source-edits.ts';

/** A realistic defect, as edits of the current production code. */
export type Mutant = {
  /** The defect in plain English. */
  name: string;
  edits: readonly SourceEdit[];
  /** The tests of its package that should find it. They run first. */
  tests: readonly string[];
  /** Tests on a real nats-server that should find it; they run after the unit tests. */
  withServer?: readonly string[];
};

/** The packages whose defects are planted. */
export type PackageName =
  | 'task'
  | 'fold'
  | 'log'
  | 'log-jetstream'
  | 'relay'
  | 'supervisor'
  | 'agent'
  | 'a2a-server'
  | 'notifier';

/** The folders that contain the code and the unit tests of a package. The A2A server is also tested through its HTTP binding. */
export const FOLDERS: Readonly<Record<PackageName, readonly string[]>> = {
  task: ['packages/task'],
  fold: ['packages/fold'],
  log: ['packages/log'],
  'log-jetstream': ['packages/log-jetstream'],
  relay: ['services/relay'],
  supervisor: ['services/supervisor'],
  agent: ['packages/agent'],
  'a2a-server': ['packages/a2a-server', 'packages/a2a-http', 'services/ingress'],
  notifier: ['services/notifier'],
};
