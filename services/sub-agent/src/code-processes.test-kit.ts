import { createLogger } from '@hopline/telemetry';
import { CodeProcesses } from './code-processes.ts';

const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });

/** Code that runs as the user of the test. */
export function sharedUser(): CodeProcesses {
  return new CodeProcesses({
    user: 'same',
    socket: undefined,
    environment: { PATH: '/usr/bin:/bin' },
    nodeOptions: [],
    stdout: process.stdout,
    stderr: process.stderr,
    logger,
    showAuthor: () => {},
  });
}
