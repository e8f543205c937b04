import { createLogger } from '@hopline/telemetry';
import { CodeProcesses } from './code-processes.ts';

const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });

/** Code that runs as the user of the test. */
export const sharedUser = () => codeProcesses(undefined);
/** Code that runs where a program listens at `socket`. */
export const elsewhere = (socket: string) => codeProcesses(socket);

function codeProcesses(socket: string | undefined): CodeProcesses {
  return new CodeProcesses({
    user: 'same',
    socket,
    environment: { PATH: '/usr/bin:/bin' },
    nodeOptions: [],
    stdout: process.stdout,
    stderr: process.stderr,
    logger,
    showAuthor: () => {},
  });
}
