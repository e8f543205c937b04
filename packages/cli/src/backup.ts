import { A2AError } from '@hopline/a2a';
import { logSettingsOf } from '@hopline/local-cluster';
import type { BackedUpStream } from '@hopline/log-jetstream';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';
import { UsageError } from './usage-error.ts';

export type BackupRun = {
  folder: string;
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
};

/** `hopline backup`: writes the streams of the log into a folder, while the cluster runs. */
export async function backup(run: BackupRun): Promise<ExitCode> {
  return await withLog('backup', run);
}

/** `hopline restore`: restores a backup into a NATS account that has none of its streams. */
export async function restore(run: BackupRun): Promise<ExitCode> {
  return await withLog('restore', run);
}

async function withLog(command: 'backup' | 'restore', { folder, json, output, environment }: BackupRun): Promise<ExitCode> {
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
    await (command === 'backup' ? backUpFromSettings : restoreFromSettings)(settings, { folder, onStream });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new A2AError('UNAVAILABLE', { detail: `the ${command} is not complete: ${reason}`, cause: thrown });
  }
  if (!json) output.line(`${command} complete: ${folder}`);
  return EXIT.ok;
}
