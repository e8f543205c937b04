import type { ProfileName, Role } from '@hopline/events';
import type { Log } from '@hopline/log';
import type { HopMetrics, Logger } from '@hopline/telemetry';
import type { A2AServer } from './a2a-server.ts';
import { type Authenticate, anonymous } from './authenticate.ts';
import { TaskFeeds } from './feed/task-feeds.ts';
import { LIMITS, type Limits } from './limits.ts';
import { Quotas } from './quotas/quotas.ts';
import { OpenStreams } from './stream/open-streams.ts';
import { TaskLists } from './task-lists.ts';

export type A2AServerOptions = {
  log: Log;
  /**
   * The role that handles the tasks created here: `supervisor`, or `agent.<name>` for an agent that clients call directly. Only tasks of
   * this role are visible here.
   */
  role: Role;
  profile: ProfileName;
  logger: Logger;
  metrics?: HopMetrics;
  /** Limits that replace those of LIMITS. */
  limits?: Partial<Limits>;
  /** Absent: authentication is off, and all callers share all tasks. */
  authenticate?: Authenticate | undefined;
} & Partial<
  Pick<
    A2AServer,
    | 'intercept'
    | 'recordedTaskIds'
    | 'streaming'
    | 'extensions'
    | 'push'
    | 'writesIndex'
    | 'webhookProblem'
    | 'outputModes'
    | 'extendedCard'
  >
>;

/** Checks only the syntax of a webhook URL. The process that calls webhooks decides which addresses are allowed. */
function webhookSyntaxProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return 'is not an absolute URL';
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'has a scheme other than https and http';
  return url.username === '' && url.password === '' ? undefined : 'contains a user name or a password';
}

/** Creates the server behind one or more bindings of a process. It keeps no state of a task outside the log. */
export function createA2AServer(options: A2AServerOptions): A2AServer {
  const { log, role, profile, logger, metrics, authenticate = anonymous } = options;
  const {
    streaming = true,
    extensions = [],
    push = false,
    writesIndex = true,
    extendedCard,
    intercept,
    recordedTaskIds,
  } = options;
  const { webhookProblem = webhookSyntaxProblem, outputModes = () => [] } = options;
  const limits = { ...LIMITS, ...options.limits };
  const lists = new TaskLists({
    log,
    role,
    readyMsMax: limits.freshMsMax,
    onLost: error => logger.warn({ err: error }, 'task index lost'),
  });
  const feeds = new TaskFeeds(log, role, limits, lists);
  const quotas = new Quotas({ log, role, limits, metrics, logger });
  const streams = new OpenStreams(limits, metrics, quotas);
  return {
    log,
    role,
    profile,
    limits,
    logger,
    metrics,
    authenticate,
    intercept,
    recordedTaskIds,
    streaming,
    extensions,
    push,
    writesIndex,
    webhookProblem,
    outputModes,
    extendedCard,
    feeds,
    streams,
    quotas,
    lists,
    drain: () => streams.drain(),
    close: () => {
      feeds.close();
      lists.close();
    },
  };
}
