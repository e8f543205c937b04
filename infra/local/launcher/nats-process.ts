import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Home } from './home.ts';
import { type NatsUsers, writePrivateFile } from './nats-users.ts';
import { HOST } from './ports.ts';
import { natsEnvironment } from './process-environment.ts';
import type { ProcessSpec } from './supervised-process.ts';

const VERSION_MS_MAX = 10_000;

/** `monitor`: port of HTTP without credentials, which lists streams and connections but no records. */
type NatsPorts = { port: number; monitor: number };

/** The nats-server of this cluster: JetStream on disk in the home, and fixed ports so that clients reconnect after a restart. */
export function natsProcess(home: Home, server: string, ports: NatsPorts, root: string, users: NatsUsers): ProcessSpec {
  return {
    service: 'nats',
    instance: 'nats-1',
    cwd: root,
    logPath: join(home.logs, 'nats-1.log'),
    prepare: async () => {
      writePrivateFile(home.natsConfig, natsConfig(home, ports, users));
      return {
        command: [...endsWithParent(), server, '-c', home.natsConfig],
        env: natsEnvironment(process.env),
        url: `nats://${HOST}:${ports.port}`,
      };
    },
  };
}

/**
 * The configuration file. 8 MB is the largest payload that nats-server accepts without a warning, and a whole A2A request must fit into it.
 */
export function natsConfig(home: Home, { port, monitor }: NatsPorts, users: NatsUsers): string {
  return [
    'server_name: hopline-local',
    `listen: "${HOST}:${port}"`,
    `http: "${HOST}:${monitor}"`,
    'max_payload: 8MB',
    `jetstream { store_dir: ${JSON.stringify(home.store)} }`,
    users.configuration,
  ].join('\n');
}

/** Version of a nats-server program, such as `2.15.2`. `unknown` if it does not run; its start then reports the reason. */
export function natsVersion(server: string): Promise<string> {
  return new Promise(resolve => {
    execFile(server, ['--version'], { timeout: VERSION_MS_MAX }, (_error, stdout) => {
      resolve(/\d+\.\d+\.\d+\S*/.exec(stdout)?.[0] ?? 'unknown');
    });
  });
}

/**
 * nats-server does not watch its standard input. On Linux the kernel ends it with the launcher (setpriv execs, so the process id
 * is that of nats-server); on other systems the next start on this home ends it.
 */
function endsWithParent(): string[] {
  if (process.platform !== 'linux') return [];
  const path = (process.env.PATH ?? '')
    .split(':')
    .map(folder => join(folder, 'setpriv'))
    .find(existsSync);
  return path ? [path, '--pdeathsig', 'TERM'] : [];
}
