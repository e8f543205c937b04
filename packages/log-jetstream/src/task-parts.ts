import type { LeaseValue, Log, RereadReason, TaskIndexEntry, TaskListValue } from '@hopline/log';
import type { Connection } from './connection.ts';
import type { DirectGets } from './direct-gets.ts';
import { ENTRY_CHECKS, type EntryCheck } from './entry-checks.ts';
import { JetStreamFacts } from './facts.ts';
import { HistoryReader } from './history-reader.ts';
import { JetStreamInputs } from './inputs.ts';
import { JetStreamKeyValue } from './key-value.ts';
import { BUCKETS } from './names.ts';
import { AGENT_TASKS_MAX, type JetStreamLogOptions } from './options.ts';
import { reportFailedCheck } from './periodic-check.ts';
import type { Publisher } from './publisher.ts';
import type { ReadClient } from './relayed-reads/read-client.ts';
import { ReadService } from './relayed-reads/read-service.ts';
import { RelayedIndex, RelayedInputs, RelayedLeases, RelayedLists } from './relayed-reads/relayed-buckets.ts';
import { RelayedFacts } from './relayed-reads/relayed-facts.ts';
import { writerOfUser } from './users.ts';

/** The parts of the log that contain tasks. `check`: rejects if they cannot be read. */
type TaskParts = {
  parts: Pick<Log, 'inputs' | 'facts' | 'leases' | 'tasks' | 'taskLists'>;
  check: () => Promise<void>;
  close: () => void;
};

type TaskPartsDeps = {
  connection: Connection;
  publisher: Publisher;
  directGets: DirectGets;
  isCompact: boolean;
  /** Undefined for every service but sub-agents. */
  client: ReadClient | undefined;
  options: JetStreamLogOptions;
};

/** A sub-agent reads tasks through relays; every other service reads them itself. A relay also reads for sub-agents. */
export function openTaskParts({ connection, publisher, directGets, isCompact, client, options }: TaskPartsDeps): TaskParts {
  const { user } = options;
  const bucket = (name: string, isValid?: EntryCheck, isReadDirectly = false) => {
    return [connection, publisher, { bucket: connection.names.bucket(name), directGets, isReadDirectly, isValid }] as const;
  };
  const tasks = bucket(BUCKETS.tasks, ENTRY_CHECKS.tasks);
  const taskLists = bucket(BUCKETS.taskLists, ENTRY_CHECKS.taskLists, true);
  const leases = bucket(BUCKETS.leases);
  const inputs = [connection, publisher, { writer: user && writerOfUser(user) }] as const;
  const follow = {
    ...options.follow,
    onReread: (why: RereadReason) => connection.onEvent({ type: 'reread', why }),
    onCheckFailed: (error: unknown) => reportFailedCheck(connection, 'the tail of a task', error),
  };
  if (client !== undefined) {
    const parts = {
      inputs: new RelayedInputs(client, ...inputs),
      facts: new RelayedFacts(client, follow),
      leases: new RelayedLeases(client, ...leases),
      tasks: new RelayedIndex(client, ...tasks),
      taskLists: new RelayedLists(client, ...taskLists),
    };
    return { parts, check: () => client.check(), close: () => {} };
  }
  const history = new HistoryReader(connection, directGets);
  const parts = {
    inputs: new JetStreamInputs(...inputs),
    facts: new JetStreamFacts(connection, publisher, { isCompact, history, directGets, follow }),
    leases: new JetStreamKeyValue<LeaseValue>(...leases),
    tasks: new JetStreamKeyValue<TaskIndexEntry>(...tasks),
    taskLists: new JetStreamKeyValue<TaskListValue>(...taskLists),
  };
  const { agentTasksMax = AGENT_TASKS_MAX } = options;
  const service = user === 'relay' ? new ReadService({ connection, directGets, history, ...parts, agentTasksMax }) : undefined;
  return { parts, check: async () => {}, close: () => service?.close() };
}
