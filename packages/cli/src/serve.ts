import { stat } from 'node:fs/promises';
import type { Recording } from '@hopline/replay-server';
import { plural } from '@hopline/task-audit/waterfall';
import { readTaskFile, TaskFileError } from '@hopline/task-file';
import type { Output } from '@hopline/terminal';
import { EXIT, type ExitCode } from './exit-code.ts';
import { bytesOfFile } from './input-file.ts';
import { UsageError } from './usage-error.ts';

export type ServeCommand = {
  files: readonly string[];
  host: string;
  port: number;
  grpcPort: number;
  pace: number;
  match: 'text' | 'any';
  fault: string | undefined;
  /** Version of Hopline. */
  version: string;
  json: boolean;
  output: Output;
  environment: Readonly<Record<string, string | undefined>>;
  signal: AbortSignal;
};

/** Recorded tasks are held in memory, about three times the size of their files; bytes of all files. */
const FILES_BYTES_MAX = 256 * 1024 * 1024;

/** `hopline serve`: an A2A server that answers with recorded tasks, until Ctrl-C. */
export async function serve(command: ServeCommand): Promise<ExitCode> {
  const { files, host, port, grpcPort, pace, match, fault, version, json, output, environment, signal } = command;
  await assertFits(files);
  // Loaded on demand: the other commands are no server.
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
      if (recordings.some(({ header }) => header.taskId === taskId)) throw new UsageError(`task ${taskId} is in the files twice`);
      recordings.push(recording);
    }
  }
  const hosts = new AllowedHosts(environment.HOPLINE_ALLOWED_HOSTS, [host]);
  const logger = createLogger({ service: 'hopline', instance: 'serve', level: 'silent' });
  const server = await createReplayServer({ recordings, match, pace, faults, version, logger, hosts });
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
