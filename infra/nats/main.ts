import { parseArgs } from 'node:util';
import { serverConfiguration } from './configuration.ts';

const USAGE = `node infra/nats/main.ts [--prefix PREFIX] [--agent NAME]... > nats.conf

Prints a configuration of nats-server with one user for each service of Hopline.

  --prefix PREFIX  HOPLINE_PREFIX of the cluster
  --agent NAME     a user for this agent alone; without it one user may be any agent`;

const { values } = parseArgs({
  options: {
    prefix: { type: 'string' },
    agent: { type: 'string', multiple: true },
    help: { type: 'boolean', short: 'h' },
  },
});
if (values.help) process.stdout.write(`${USAGE}\n`);
else process.stdout.write(serverConfiguration({ prefix: values.prefix, agents: values.agent ?? [] }));
