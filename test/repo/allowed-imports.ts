/**
 * The layer map: the workspace packages that each package or service may import. An edge that is missing here fails the build, and so does
 * an unused one. Layer 0 is the protocol and the process, 1 the vocabulary of the log, 2 the pure rules and the log's interface, 3 the broker,
 * the A2A bindings and the agents' interface, 4 the adapters. Services are on top and never import each other.
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
  'chat-model': ['a2a', 'outbound-http', 'telemetry'],
  cli: ['a2a', 'task-audit', 'client', 'lifecycle', 'log-jetstream', 'profiles', 'telemetry'],
  events: ['a2a'],
  profiles: ['events'],
  task: ['a2a', 'events'],
  log: ['a2a', 'events'],
  'task-audit': ['a2a', 'events', 'log', 'task'],
  'log-jetstream': ['events', 'lifecycle', 'log', 'telemetry'],
  'context-history': ['a2a', 'events', 'log', 'profiles', 'task'],
  agent: ['a2a', 'context-history', 'events', 'log', 'profiles', 'task', 'telemetry'],
  'a2a-server': ['a2a', 'agent-card', 'context-history', 'events', 'log', 'task', 'telemetry'],
  'a2a-http': ['a2a', 'a2a-server', 'agent-card', 'events'],
  'a2a-grpc': ['a2a', 'a2a-server', 'agent-card'],
  'agent-a2a': ['a2a', 'agent', 'agent-card', 'outbound-http', 'profiles'],
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
    'profiles',
    'task-audit',
    'telemetry',
    'webhook-guard',
  ],
  relay: ['a2a', 'coalesce', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry'],
  notifier: ['a2a', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry', 'webhook-guard'],
  supervisor: [
    'a2a',
    'chat-model',
    'context-history',
    'events',
    'lifecycle',
    'log',
    'log-jetstream',
    'profiles',
    'task',
    'telemetry',
  ],
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

/** Packages without I/O, and the Node built-ins each may import. */
export const PURE_PACKAGES: Record<string, readonly string[]> = {
  a2a: [],
  events: [],
  task: ['node:crypto'],
  coalesce: [],
  'agent-card': ['node:crypto'],
};

/** The only folders that may import a NATS client. */
export const NATS_IMPORTERS = ['packages/log-jetstream', 'test'];

export const BANNED_NAMES = ['common', 'core', 'helper', 'helpers', 'manager', 'misc', 'shared', 'util', 'utils'];
