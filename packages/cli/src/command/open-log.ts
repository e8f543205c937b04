import { A2AError } from '@hopline/a2a';
import { logSettingsOf } from '@hopline/local-cluster';
import type { CommandContext } from './command.ts';
import { flag } from './options.ts';
import { UsageError } from './usage-error.ts';

/** Option of the commands that read a task from its server or, for operators, from the log. */
export const NATS = flag(
  'reads NATS (NATS_URL, default: the local cluster of `npm start`) instead of the server; for tasks of other callers',
  { excludes: { options: ['url'], because: 'NATS_URL names the NATS server' } },
);

/** A person waits, and can repeat the command. */
const OPEN_MS_MAX = 5_000;

type Environment = CommandContext['environment'];
type OpenLog = Awaited<ReturnType<typeof openLog>>;

/** Opens the log with a login (by default the operator's), and closes it afterwards. */
export async function withLog<T>(
  environment: Environment,
  name: string,
  use: (log: OpenLog) => Promise<T>,
  login?: 'operator' | 'admin',
): Promise<T> {
  const log = await openLog(environment, name, login);
  try {
    return await use(log);
  } finally {
    await log.close();
  }
}

/**
 * Opens the log with the login of its operator, who may only read it, or of its administrator, who may write it. Throws UsageError and
 * UNAVAILABLE.
 */
export async function openLog(environment: Environment, name: string, login: 'operator' | 'admin' = 'operator') {
  const log = logSettingsOf(environment, login);
  // Loaded on demand: the other commands need no broker.
  const [{ LOG_SETTINGS, openFromSettings }, { ConfigError, defineConfig }, { createLogger }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
    import('@hopline/telemetry'),
  ]);
  const logger = createLogger({ service: 'hopline', instance: name, level: 'silent' });
  try {
    const settings = defineConfig(LOG_SETTINGS).load({ ...environment, ...log });
    return await openFromSettings(settings, { user: 'operator', name, logger, openTimeoutMs: OPEN_MS_MAX });
  } catch (thrown) {
    // A missing permission is a fault of a service's settings, but not of a command line.
    if (thrown instanceof ConfigError && isDenied(thrown.cause)) throw errorOfLog(thrown.cause, 'the log cannot be opened');
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    throw errorOfLog(thrown, 'the log cannot be opened');
  }
}

/** An error of the log, with its meaning for the command. After a missing permission, a repetition would fail in the same way. */
export function errorOfLog(thrown: unknown, fault: string): A2AError {
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return new A2AError(isDenied(thrown) ? 'PERMISSION_DENIED' : 'UNAVAILABLE', { detail: `${fault}: ${reason}`, cause: thrown });
}

/** Recognized by name, because the class is loaded on demand. */
function isDenied(thrown: unknown): thrown is Error {
  return thrown instanceof Error && thrown.name === 'LogDenied';
}

/** The log throws a TypeError for a text that cannot be a task id. */
export function undefinedForInvalidId(thrown: unknown): undefined {
  if (!(thrown instanceof TypeError)) throw thrown;
  return undefined;
}
