/** A test file, or the tests of a folder, that takes more than about 15 seconds on two quiet cores. */
type LongFile = {
  path: string;
  /** True if it mostly waits, e.g. for time limits of other programs, so that it can run alongside two other files. */
  waits?: boolean;
};

/** The longest file comes first, because they start in this order, before all other files. */
export const LONG_FILES: readonly LongFile[] = [
  { path: 'test/observe/alerts.test.ts', waits: true },
  { path: 'test/faults/frozen-path.test.ts', waits: true },
  { path: 'test/e2e/trace-trees.test.ts', waits: true },
  { path: 'test/fuzz/rest.test.ts', waits: true },
  { path: 'test/integration/log/lost-deliveries.test.ts', waits: true },
  { path: 'test/integration/log/quiet-followers.test.ts', waits: true },
  { path: 'test/integration/log/dead-workers.test.ts', waits: true },
  { path: 'test/integration/log/jetstream.test.ts', waits: true },
  { path: 'test/integration/log/full-disk.test.ts', waits: true },
  { path: 'test/nats-double/contract.test.ts', waits: true },
  { path: 'test/nats-double', waits: true },
  { path: 'test/integration/log/hostile-login.test.ts', waits: true },
  { path: 'test/integration/log/lagging-replica.test.ts', waits: true },
  { path: 'test/integration/log/streams.test.ts', waits: true },
  { path: 'test/integration/log/leader-placement.test.ts', waits: true },
  { path: 'test/integration/log', waits: true },
  { path: 'services/notifier', waits: true },
  { path: 'test/conformance/durable-streams.test.ts', waits: true },
  { path: 'services/relay', waits: true },
  { path: 'packages/agent', waits: true },
  { path: 'test/e2e/kill-from-page.test.ts', waits: true },
  { path: 'test/faults/one-power-loss.test.ts', waits: true },
  { path: 'packages/a2a-http', waits: true },
  { path: 'test/e2e/queue-notices.test.ts', waits: true },
  { path: 'test/integration/tls', waits: true },
  { path: 'packages/cli', waits: true },
  { path: 'test/upgrade/upgrade-in-place.test.ts', waits: true },
  { path: 'test/faults/nats-away.test.ts', waits: true },
  { path: 'packages/a2a-grpc', waits: true },
  { path: 'packages/telemetry/src/start-telemetry.test.ts', waits: true },
  { path: 'packages/agent-mcp', waits: true },
  { path: 'packages/agent-code', waits: true },
  { path: 'test/security', waits: true },
  { path: 'test/e2e/packages.test.ts' },
  { path: 'test/faults/campaign/campaign.test.ts' },
  { path: 'test/simulator/simulator.test.ts' },
  { path: 'test/e2e/guides.test.ts' },
  { path: 'test/integration/agents/python-frameworks.test.ts' },
  { path: 'test/bench/bench.test.ts' },
  { path: 'test/e2e/command-line.test.ts' },
  { path: 'test/e2e/browser/console.test.ts' },
  { path: 'test/faults/model-supervisor-death.test.ts' },
  { path: 'test/e2e/nested-agents.test.ts' },
  { path: 'test/faults/orderly-restarts.test.ts' },
  { path: 'test/e2e/hops.test.ts' },
  { path: 'test/e2e/nats-users.test.ts' },
  { path: 'test/faults/relay-death.test.ts' },
  { path: 'test/fuzz/cluster.test.ts' },
  { path: 'test/faults/notifier-death.test.ts' },
  { path: 'test/soak/soak.test.ts' },
  { path: 'test/faults/task-life.test.ts' },
  { path: 'test/e2e/push.test.ts' },
  { path: 'test/fuzz/json-rpc.test.ts' },
  { path: 'test/e2e/task-files.test.ts' },
  { path: 'test/e2e/auth.test.ts' },
  { path: 'infra/local/launcher/main.test.ts' },
  { path: 'packages/lifecycle' },
  { path: 'services/supervisor' },
  { path: 'infra/observe/rules.test.ts' },
  { path: 'infra/release/api-reference.test.ts' },
];

export function waitsMostly(path: string): boolean {
  return LONG_FILES.find(file => `${path}/`.startsWith(`${file.path}/`))?.waits === true;
}
