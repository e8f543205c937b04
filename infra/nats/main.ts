import { parseArgs } from 'node:util';
import { serverConfiguration } from './configuration.ts';

const USAGE = `node infra/nats/main.ts [--prefix PREFIX] [--agent NAME]... > nats.conf

Prints a configuration of nats-server with one user for each service of Hopline.

  --prefix PREFIX  HOPLINE_PREFIX of the cluster
  --agent NAME     a user for this agent only; without it one user can act as any agent
`;

function configuration(): string {
  const { values } = parseArgs({
    options: {
      prefix: { type: 'string' },
      agent: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h' },
    },
  });
  return values.help ? USAGE : serverConfiguration({ prefix: values.prefix, agents: values.agent ?? [] });
}

try {
  process.stdout.write(configuration());
} catch (error) {
  process.stderr.write(`hopline: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
