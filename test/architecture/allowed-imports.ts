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
  'agent-card': ['a2a'],
  auth: ['a2a', 'agent-card', 'lifecycle', 'telemetry'],
  client: ['a2a', 'agent-card'],
  'chat-model': ['telemetry'],
  cli: ['a2a', 'audit', 'client', 'lifecycle', 'log-jetstream', 'telemetry'],
  'a2a-proto-03': ['a2a'],
  events: ['a2a'],
  task: ['a2a', 'events'],
  log: ['a2a', 'events'],
  audit: ['a2a', 'events', 'log', 'task'],
  'log-jetstream': ['events', 'lifecycle', 'log', 'telemetry'],
  conversation: ['a2a', 'events', 'log', 'task'],
  'shard-leases': ['log'],
  agent: ['a2a', 'conversation', 'events', 'log', 'task', 'telemetry'],
  'a2a-door': ['a2a', 'agent-card', 'conversation', 'events', 'log', 'task', 'telemetry'],
  'a2a-http': ['a2a', 'a2a-door', 'a2a-proto-03', 'agent-card', 'events'],
  'a2a-grpc': ['a2a', 'a2a-door', 'a2a-proto-03', 'agent-card'],
  'agent-a2a': ['a2a', 'agent', 'agent-card'],
  'agent-langgraph': ['a2a', 'agent'],
  'agent-mcp': ['a2a', 'agent'],
  'agent-model': ['a2a', 'agent', 'agent-mcp', 'chat-model'],
  'agent-recording': ['agent'],
  ingress: [
    'a2a',
    'a2a-door',
    'a2a-grpc',
    'a2a-http',
    'agent-card',
    'auth',
    'events',
    'lifecycle',
    'log',
    'log-jetstream',
    'telemetry',
    'webhook-guard',
  ],
  relay: ['a2a', 'coalesce', 'events', 'lifecycle', 'log', 'log-jetstream', 'shard-leases', 'task', 'telemetry'],
  notifier: ['a2a', 'events', 'lifecycle', 'log', 'log-jetstream', 'shard-leases', 'task', 'telemetry', 'webhook-guard'],
  supervisor: ['a2a', 'chat-model', 'conversation', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry'],
  'sub-agent': [
    'a2a-door',
    'a2a-http',
    'agent',
    'agent-a2a',
    'agent-card',
    'agent-langgraph',
    'agent-mcp',
    'agent-model',
    'agent-recording',
    'auth',
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

export const FILE_LINES_MAX = 300;
export const TEST_FILE_LINES_MAX = 500;
/** Source files in one package, tests and golden files not counted. */
export const PACKAGE_FILES_MAX = 45;
export const README_LINES_MAX = 60;
