import { parseArgs } from 'node:util';
import { serverConfiguration } from './configuration.ts';

const USAGE = `node infra/nats/main.ts [--prefix PREFIX] [--groups NUMBER] [--agent NAME]... > nats.conf

Prints a configuration of nats-server with one user for each service of Hopline.

  --prefix PREFIX  HOPLINE_PREFIX of the cluster
  --groups NUMBER  stream groups of the cluster: HOPLINE_STREAM_GROUPS and those of HOPLINE_LAYOUTS together; 1 without it
  --agent NAME     a user for this agent only; without it one user can act as any agent
`;

function configuration(): string {
  const { values } = parseArgs({
    options: {
      prefix: { type: 'string' },
      groups: { type: 'string' },
      agent: { type: 'string', multiple: true },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return USAGE;
  const { prefix, groups, agent: agents = [] } = values;
  return serverConfiguration({ prefix, agents, groups: Number(groups ?? 1) });
}

try {
  process.stdout.write(configuration());
} catch (error) {
  process.stderr.write(`hopline: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
