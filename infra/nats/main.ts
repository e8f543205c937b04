import { parseArgs } from 'node:util';
import { serverConfiguration } from './configuration.ts';

const USAGE = `node infra/nats/main.ts [--prefix PREFIX] [--groups NUMBER] [--agent NAME]... [--one-account [--earlier-agents]] > nats.conf

Prints a configuration of nats-server with one user for each service of Hopline.

  --prefix PREFIX  HOPLINE_PREFIX of the cluster
  --groups NUMBER  stream groups of the cluster: HOPLINE_STREAM_GROUPS and those of HOPLINE_LAYOUTS together; 1 without it
  --agent NAME     a user for this agent only; without it one user can act as any agent
  --one-account    one account for all users; without it each agent has an account of its own, apart from that of the log. A log stays
                   in the account in which it was created: for an existing one, choose the same form again
  --earlier-agents agents may also do what those of a version before 2026-11-30 need, until all are upgraded; only with --one-account
`;

function configuration(): string {
  const { values } = parseArgs({
    options: {
      prefix: { type: 'string' },
      groups: { type: 'string' },
      agent: { type: 'string', multiple: true },
      'one-account': { type: 'boolean' },
      'earlier-agents': { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help) return USAGE;
  const {
    prefix,
    groups,
    agent: agents = [],
    'one-account': inOneAccount = false,
    'earlier-agents': earlierAgents = false,
  } = values;
  if (earlierAgents && !inOneAccount) throw new TypeError('--earlier-agents needs --one-account');
  return serverConfiguration({ prefix, agents, groups: Number(groups ?? 1), earlierAgents, agentAccounts: !inOneAccount });
}

try {
  process.stdout.write(configuration());
} catch (error) {
  process.stderr.write(`hopline: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
