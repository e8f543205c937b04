import type { ProfileName, Role } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { A2AServer } from './a2a-server.ts';
import { type Authenticate, anonymous } from './authenticate.ts';
import { TaskFeeds } from './feed/task-feeds.ts';
import { LIMITS, type Limits } from './limits.ts';
import { OpenStreams } from './stream/open-streams.ts';
import { TaskIndex } from './task-index.ts';

export type A2AServerOptions = {
  log: Log;
  /** Who works on the tasks that come in here, and whose tasks can be seen here: `supervisor`, or `agent.<name>` for an agent that is called directly (S0-46). */
  role: Role;
  profile: ProfileName;
  logger: Logger;
  metrics?: HopMetrics;
  /** Instead of LIMITS. */
  limits?: Partial<Limits>;
  /** Absent: everybody may ask, and sees everything. */
  authenticate?: Authenticate;
} & Partial<Pick<A2AServer, 'streaming' | 'extensions' | 'push' | 'webhookProblem' | 'outputModes' | 'extendedCard'>>;

/** No more than the wire needs: where a webhook may be is for whoever calls it to know. */
function webhookSyntaxProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return 'is not an absolute URL';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'is neither https nor http';
  return url.username === '' && url.password === '' ? undefined : 'holds a user name or a password';
}

/** A door for one or more bindings of one process. Keeps nothing of a task that is not in the log. */
export function createA2AServer(options: A2AServerOptions): A2AServer {
  const { log, role, profile, logger, metrics, authenticate = anonymous } = options;
  const { streaming = true, extensions = [], push = false, extendedCard } = options;
  const { webhookProblem = webhookSyntaxProblem, outputModes = () => [] } = options;
  const limits = { ...LIMITS, ...options.limits };
  const index = new TaskIndex({
    tasks: log.tasks,
    role,
    entriesMax: limits.listedTasksMax,
    readyMsMax: limits.freshMsMax,
    lost: error => logger.warn({ err: error }, 'task index lost'),
  });
  const feeds = new TaskFeeds(log, role, limits, index);
  const streams = new OpenStreams(limits, metrics);
  return {
    log,
    role,
    profile,
    limits,
    logger,
    metrics,
    authenticate,
    streaming,
    extensions,
    push,
    webhookProblem,
    outputModes,
    extendedCard,
    feeds,
    streams,
    index,
    drain: () => streams.drain(),
    close: () => {
      feeds.close();
      index.close();
    },
  };
}
