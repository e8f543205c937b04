import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Balancer } from '../support/cluster/balancer.ts';
import { Cluster } from '../support/cluster/cluster.ts';
import known from './known.json' with { type: 'json' };
import { startTckAgent } from './tck-agent.ts';
import { type Binding, figures, judge, type Known, type Result, type Verdict } from './tck-results.ts';
import { type Kit, kitAt, runKit } from './tck-run.ts';

const USAGE = `Runs the A2A conformance kit (a2aproject/a2a-tck, branch 1.0-dev) against a cluster in profile transparent: two ingresses, every request at the other one.

  node test/conformance/tck.ts PATH [--transport jsonrpc,http_json,grpc] [--python PYTHON]

PATH         a checkout of the kit, beside this one; see test/conformance/TCK.md
--transport  only these bindings; default all that the card offers
--python     interpreter with the kit's dependencies; default PATH/.venv/bin/python, else python3
`;

const BINDING_OF: Readonly<Record<string, Binding>> = { JSONRPC: 'jsonrpc', 'HTTP+JSON': 'http_json', GRPC: 'grpc' };

const print = (text: string) => process.stdout.write(`${text}\n`);

try {
  process.exitCode = await main(process.argv.slice(2).filter(arg => arg !== '--'));
} catch (error) {
  process.stderr.write(`tck: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { transport: { type: 'string', default: 'all' }, python: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  });
  const [path] = positionals;
  if (values.help || path === undefined) {
    print(USAGE);
    return values.help ? 0 : 2;
  }
  const kit = kitAt(resolve(process.env.INIT_CWD ?? process.cwd(), path), values.python);
  return report(await runAgainstCluster(kit, values.transport));
}

type Run = { results: Result[]; reports: string; offered: Binding[]; counts: Balancer['counts'] };

async function runAgainstCluster(kit: Kit, transports: string): Promise<Run> {
  const agent = await startTckAgent();
  try {
    const agents = [{ name: 'tck', adapter: 'a2a', url: agent.url }];
    // The kit's webhook listens on loopback.
    const env = { HOPLINE_PUSH: 'true', HOPLINE_WEBHOOK_HTTP: 'true', HOPLINE_WEBHOOK_ALLOW: 'localhost,127.0.0.1' };
    await using cluster = await Cluster.start({ profile: 'transparent', grpc: true, balanced: true, notifiers: 1, agents, env });
    const offered = await bindingsOf(cluster.url, transports);
    return { ...(await runKit(kit, cluster.url, transports)), offered, counts: cluster.balancer!.counts };
  } finally {
    await agent.close();
  }
}

/** Transports that the card offers and the options select. */
async function bindingsOf(url: string, transports: string): Promise<Binding[]> {
  const response = await fetch(`${url}/.well-known/agent-card.json`);
  const card = (await response.json()) as { supportedInterfaces: { protocolBinding: string }[] };
  const offered = new Set(card.supportedInterfaces.map(one => BINDING_OF[one.protocolBinding]));
  return [...offered].filter(
    one => one !== undefined && (transports === 'all' || transports.split(',').includes(one)),
  ) as Binding[];
}

/** Returns the exit code. */
function report({ results, reports, offered, counts }: Run): number {
  const ran = results.filter(({ binding }) => binding === 'card' || binding === 'any' || offered.includes(binding));
  const verdict = judge(ran, known as Known[], results);
  print(figures(ran));
  print(`\nRequests at each ingress: HTTP ${counts.http.join(' and ')}, gRPC ${counts.grpc.join(' and ')}.`);
  print(`${results.length - ran.length} tests belong to bindings that are not offered. Reports: ${reports}\n`);
  for (const line of explanations(verdict)) print(line);
  for (const { test, outcome, reason } of verdict.unexpected) print(`UNEXPECTED ${outcome}: ${test}\n  ${reason}`);
  for (const { tests } of verdict.stale) print(`STALE in known.json: each test with "${tests}" passes, or none exists`);
  return verdict.unexpected.length + verdict.stale.length > 0 ? 1 : 0;
}

function explanations({ explained }: Verdict): string[] {
  return explained.map(({ known: { why, tests, reason }, results }) => `${why} (${results.length}): ${tests}\n  ${reason}`);
}
