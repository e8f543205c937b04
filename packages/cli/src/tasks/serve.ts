import { stat } from 'node:fs/promises';
import type { Recording } from '@hopline/replay-server';
import { plural } from '@hopline/task-audit/waterfall';
import { readTaskFile, TaskFileError } from '@hopline/task-file';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { bytesOfFile } from '../command/input-file.ts';
import { parsed, text } from '../command/options.ts';
import { several } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { VERSION } from '../version.ts';
import { PACE } from './pace.ts';

/** Bytes of all files together. Recorded tasks are held in memory, at about three times the size of their files. */
const FILES_BYTES_MAX = 256 * 1024 * 1024;

const PORT_DEFAULT = 8_000;
const PORT_MAX = 65_535;
const HOST_DEFAULT = '127.0.0.1';

export const serve = command({
  name: 'serve',
  subject: several('FILE…', 'one task file or several', 'files'),
  summary: 'runs an A2A server that answers with recorded tasks, without agents, keys or NATS',
  details:
    'JSON-RPC, HTTP+JSON and gRPC in every version; a message is answered with the recording of the same text; recorded tasks are listed under ' +
    'their own ids',
  asksNoServer: true,
  options: {
    port: parsed('N', `HTTP port, 0 chooses a free one; default ${PORT_DEFAULT}`, port),
    grpcPort: parsed('N', 'gRPC port; default: a free one', port),
    host: text('HOST', `address to listen on, default ${HOST_DEFAULT}`),
    pace: PACE,
    match: parsed(
      'RULE',
      'text (default): rejects other texts and lists the recorded ones; any: answers every message with a recording, in turn',
      matchRule,
      ['text', 'any'],
    ),
    fault: text(
      'FAULTS',
      'cut=N cuts each stream after N frames, delay=MS delays each request, refuse=N answers the first N requests with 503; ' +
        'joined by commas. A request chooses its own faults with the header or the metadata hopline-fault',
    ),
  },
  notes: 'Ctrl-C ends it. Answered tasks are kept in memory until then.',
  async run({ subject: files, options }, { json, output, environment, signal }) {
    const { host = HOST_DEFAULT, port = PORT_DEFAULT, grpcPort = 0, pace = 1, match = 'text', fault } = options;
    await assertFits(files);
    // Loaded on demand, because the other commands are not servers.
    const [{ createReplayServer, parseFaults, readRecordings }, { createLogger }, { AllowedHosts }] = await Promise.all([
      import('@hopline/replay-server'),
      import('@hopline/telemetry'),
      import('@hopline/lifecycle'),
    ]);
    const faults = checked('--fault', () => (fault === undefined ? {} : parseFaults(fault)));
    const recordings: Recording[] = [];
    for (const file of files) {
      const read = await readRecordings(readTaskFile(bytesOfFile(file))).catch((thrown: unknown) => {
        if (!(thrown instanceof TaskFileError)) throw thrown;
        throw new UsageError(`${file}: ${thrown.message}`);
      });
      for (const recording of read) {
        const { taskId } = recording.header;
        if (recordings.some(({ header }) => header.taskId === taskId))
          throw new UsageError(`task ${taskId} is in the files twice`);
        recordings.push(recording);
      }
    }
    const hosts = new AllowedHosts(environment.HOPLINE_ALLOWED_HOSTS, [host]);
    const logger = createLogger({ service: 'hopline', instance: 'serve', level: 'silent' });
    const server = await createReplayServer({ recordings, match, pace, faults, version: VERSION, logger, hosts });
    try {
      const listening = await server.listen(host, port, grpcPort).catch((thrown: NodeJS.ErrnoException) => {
        throw new UsageError(`the server cannot listen on ${host}:${port} (${thrown.code})`);
      });
      if (json) output.line(JSON.stringify({ ...listening, tasks: recordings.length }));
      else output.line(`${plural(recordings.length, 'recorded task')} at ${listening.url}, gRPC at port ${listening.grpcPort}`);
      await new Promise<void>(resolve => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      return EXIT.ok;
    } finally {
      await server.close();
    }
  },
});

function port(given: string): number {
  const number = /^\d{1,5}$/.test(given) ? Number(given) : Number.NaN;
  if (number <= PORT_MAX) return number;
  throw new UsageError(`must be a number from 0 to ${PORT_MAX}`);
}

function matchRule(given: string): 'text' | 'any' {
  if (given === 'text' || given === 'any') return given;
  throw new UsageError('must be text or any');
}

async function assertFits(files: readonly string[]): Promise<void> {
  let bytes = 0;
  for (const file of files) {
    const found = await stat(file).catch((thrown: NodeJS.ErrnoException) => {
      throw new UsageError(`${file} cannot be read (${thrown.code})`);
    });
    bytes += found.size;
  }
  if (bytes > FILES_BYTES_MAX)
    throw new UsageError(`the files have ${bytes} bytes, and at most ${FILES_BYTES_MAX} are served: choose fewer tasks`);
}

function checked<T>(option: string, parse: () => T): T {
  try {
    return parse();
  } catch (thrown) {
    if (!(thrown instanceof TypeError)) throw thrown;
    throw new UsageError(`${option}: ${thrown.message}`);
  }
}
