/**
 * The layer map, as data: which workspace packages each one may import. An edge that is not here fails the build; so does one that is here and nobody uses.
 * Layer 0 knows the protocol and the process, 1 the log's words, 2 the pure rules and the seam, 3 the broker and the HTTP and agent ends, 4 single kinds of agents. Services stand on top and
 * never import each other.
 */
export const ALLOWED_IMPORTS: Record<string, readonly string[]> = {
  a2a: [],
  telemetry: [],
  coalesce: [],
  lifecycle: ['telemetry'],
  'webhook-guard': [],
  'outbound-http': [],
  'agent-card': ['a2a'],
  endpoint: ['a2a', 'agent-card', 'lifecycle', 'telemetry'],
  client: ['a2a', 'agent-card'],
  'chat-model': ['outbound-http', 'telemetry'],
  cli: ['a2a', 'task-audit', 'client', 'lifecycle', 'log-jetstream', 'telemetry'],
  events: ['a2a'],
  task: ['a2a', 'events'],
  log: ['a2a', 'events'],
  'task-audit': ['a2a', 'events', 'log', 'task'],
  'log-jetstream': ['events', 'lifecycle', 'log', 'telemetry'],
  'context-history': ['a2a', 'events', 'log', 'task'],
  agent: ['a2a', 'context-history', 'events', 'log', 'task', 'telemetry'],
  'a2a-server': ['a2a', 'agent-card', 'context-history', 'events', 'log', 'task', 'telemetry'],
  'a2a-http': ['a2a', 'a2a-server', 'agent-card', 'events'],
  'a2a-grpc': ['a2a', 'a2a-server', 'agent-card'],
  'agent-a2a': ['a2a', 'agent', 'agent-card', 'outbound-http'],
  'agent-langgraph': ['a2a', 'agent', 'outbound-http'],
  'agent-mcp': ['a2a', 'agent', 'outbound-http'],
  'agent-model': ['a2a', 'agent', 'agent-mcp', 'chat-model'],
  ingress: [
    'a2a',
    'a2a-server',
    'a2a-grpc',
    'a2a-http',
    'agent-card',
    'endpoint',
    'events',
    'lifecycle',
    'log',
    'log-jetstream',
    'telemetry',
    'webhook-guard',
  ],
  relay: ['a2a', 'coalesce', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry'],
  notifier: ['a2a', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry', 'webhook-guard'],
  supervisor: ['a2a', 'chat-model', 'context-history', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry'],
  'sub-agent': [
    'a2a-server',
    'a2a-http',
    'agent',
    'agent-a2a',
    'agent-card',
    'agent-langgraph',
    'agent-mcp',
    'agent-model',
    'endpoint',
    'events',
    'lifecycle',
    'log',
    'log-jetstream',
    'telemetry',
  ],
};

/** Packages that must stay pure: no Node built-in but these. */
export const PURE_PACKAGES: Record<string, readonly string[]> = {
  a2a: [],
  events: [],
  task: ['node:crypto'],
  coalesce: [],
  'agent-card': ['node:crypto'],
};

/** The only packages and folders that may import a broker client. */
export const KNOWS_NATS = ['packages/log-jetstream', 'test'];

export const BANNED_NAMES = ['common', 'core', 'helper', 'helpers', 'manager', 'misc', 'shared', 'util', 'utils'];
