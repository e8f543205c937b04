import { parseArgs } from 'node:util';
import { serverConfiguration } from './configuration.ts';

const USAGE = `node infra/nats/main.ts [--prefix PREFIX] [--groups NUMBER] [--agent NAME]... [--accounts | --earlier-agents] > nats.conf

Prints a configuration of nats-server with one user for each service of Hopline.

  --prefix PREFIX  HOPLINE_PREFIX of the cluster
  --groups NUMBER  stream groups of the cluster: HOPLINE_STREAM_GROUPS and those of HOPLINE_LAYOUTS together; 1 without it
  --agent NAME     a user for this agent only; without it one user can act as any agent
  --accounts       an account for each agent, apart from that of the log: for a new NATS server, because a log that exists would be left behind
  --earlier-agents agents may also do what those of a version before 2026-11-30 need, until all are upgraded
`;

function configuration(): string {
  const { values } = parseArgs({
    options: {
      prefix: { type: 'string' },
      groups: { type: 'string' },
      agent: { type: 'string', multiple: true },
      accounts: { type: 'boolean' },
      'earlier-agents': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return USAGE;
  const { prefix, groups, agent: agents = [], accounts: agentAccounts = false, 'earlier-agents': earlierAgents = false } = values;
  return serverConfiguration({ prefix, agents, groups: Number(groups ?? 1), earlierAgents, agentAccounts });
}

try {
  process.stdout.write(configuration());
} catch (error) {
  process.stderr.write(`hopline: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
