import { Layouts } from '@hopline/events';
import { logSettingsOf } from '@hopline/local-cluster';
import type { CommandContext } from '../command/command.ts';
import { command } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { errorOfLog } from '../command/open-log.ts';
import { optional } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';

const SIZE = /^(\d{1,3})\/(\d{1,2})$/;

export const layout = command({
  name: 'layout',
  subject: optional('[SHARDS/GROUPS]', 'at most one layout, such as 64/4'),
  summary: 'adds a layout of shards and stream groups to the log, while the cluster runs',
  details:
    'new tasks use it 10 minutes later, other tasks stay where they are; prints all layouts and when they begin. Without SHARDS/GROUPS it only prints',
  asksNoServer: true,
  options: {},
  notes:
    'Reads NATS (NATS_URL, default: the local cluster of `npm start`) as the user `admin`. Every service must have a version with this command, and ' +
    'the NATS users permissions for the streams of all layouts together (`node infra/nats/main.ts --groups`). A layout cannot be removed.',
  run: ({ subject }, context) => addOrPrint(subject, context),
});

async function addOrPrint(text: string | undefined, { json, output, environment }: CommandContext): Promise<ExitCode> {
  const size = SIZE.exec(text ?? '');
  if (text !== undefined && size === null) throw new UsageError(`layout requires SHARDS/GROUPS, such as 64/4, not ${text}`);
  const added = size === null ? undefined : { shards: Number(size[1]), groups: Number(size[2]) };
  if (added !== undefined) requirePossible(added);
  const log = logSettingsOf(environment, 'admin');
  // Loaded on demand: the other commands need no broker.
  const [{ LOG_SETTINGS, addLayoutFromSettings }, { ConfigError, defineConfig }] = await Promise.all([
    import('@hopline/log-jetstream'),
    import('@hopline/lifecycle'),
  ]);
  try {
    await addLayoutFromSettings(defineConfig(LOG_SETTINGS).load({ ...environment, ...log }), {
      size: added,
      onLayout: ({ begins, shards, groups }) => {
        const layout = { begins, shards, groups };
        output.line(json ? JSON.stringify(layout) : lineOf(layout));
      },
    });
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw new UsageError(thrown.message);
    const fault =
      added === undefined
        ? 'the layouts cannot be read'
        : 'the layout was perhaps not added: run the command without an argument to see, then repeat it';
    throw errorOfLog(thrown, fault);
  }
  return EXIT.ok;
}

/** E.g. "256 shards in 1 stream group from the beginning on". */
export function lineOf({ begins, shards, groups }: { begins: number; shards: number; groups: number }): string {
  const from = begins === 0 ? 'the beginning' : new Date(begins).toISOString();
  return `${shards} ${shards === 1 ? 'shard' : 'shards'} in ${groups} stream ${groups === 1 ? 'group' : 'groups'} from ${from} on`;
}

/** An impossible layout is refused before the log is asked, even if the log cannot be reached. */
function requirePossible({ shards, groups }: { shards: number; groups: number }): void {
  try {
    Layouts.one(shards, groups);
  } catch (error) {
    throw new UsageError((error as RangeError).message);
  }
}
