import { logSettingsOf } from '@hopline/local-cluster';
import type { BackedUpStream } from '@hopline/log-jetstream';
import type { CommandContext } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { errorOfLog } from '../command/open-log.ts';
import { UsageError } from '../command/usage-error.ts';

/** Copies the streams of the log into a folder, or back into the log, and prints a line for each. */
export async function copyStreams(
  direction: 'backup' | 'restore',
  folder: string,
  { json, output, environment }: CommandContext,
): Promise<ExitCode> {
  const log = logSettingsOf(environment, 'admin');
  // Loaded on demand: the other commands need no broker.
  const [{ LOG_SETTINGS, backUpFromSettings, restoreFromSettings }, { ConfigError, defineConfig }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
  ]);
  const onStream = (stream: BackedUpStream) => {
    const { name, messages, bytes } = stream;
    output.line(json ? JSON.stringify(stream) : `${name}: ${messages} messages, ${bytes} bytes`);
  };
  try {
    const settings = defineConfig(LOG_SETTINGS).load({ ...environment, ...log });
    await (direction === 'backup' ? backUpFromSettings : restoreFromSettings)(settings, { folder, onStream });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    throw errorOfLog(thrown, `the ${direction} is not complete`);
  }
  if (!json) output.line(`${direction} complete: ${folder}`);
  return EXIT.ok;
}
