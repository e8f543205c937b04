/** The layers of the packages, lowest first. A package imports only packages of its own layer or a lower one. packages/README.md shows them. */
export const LAYERS: readonly (readonly string[])[] = [
  // The protocol, and what every process needs.
  ['a2a', 'coalesce', 'lifecycle', 'outbound-http', 'telemetry', 'webhook-guard'],
  // The vocabulary of the log and of clients.
  [
    'ag-ui',
    'agent-card',
    'chat-model',
    'client',
    'endpoint',
    'events',
    'openai-api',
    'profiles',
    'task-view',
    'ui-message-stream',
  ],
  // The rules of a task, and the interface of the log.
  ['context-history', 'fold', 'log', 'replay', 'task', 'task-audit', 'task-file', 'task-transfer'],
  // The broker, the A2A server, and the interface of agents.
  ['a2a-grpc', 'a2a-http', 'a2a-server', 'ag-ui-http', 'agent', 'ai-sdk-http', 'log-jetstream', 'openai-http'],
  // Adapters, and programs for people.
  ['agent-a2a', 'agent-code', 'agent-langgraph', 'agent-mcp', 'agent-model', 'cli', 'local-cluster', 'replay-server', 'terminal'],
];

/**
 * The workspace packages that each package or service may import. An edge that is missing here fails the build, and so does an unused one.
 * Services may import every layer and never import each other.
 */
export const ALLOWED_IMPORTS: Record<string, readonly string[]> = {
  a2a: [],
  telemetry: [],
  coalesce: [],
  lifecycle: ['a2a', 'telemetry'],
  'webhook-guard': [],
  'outbound-http': [],
  'agent-card': ['a2a'],
  endpoint: ['a2a', 'agent-card', 'events', 'lifecycle', 'telemetry'],
  client: ['a2a', 'agent-card', 'task-view', 'ui-message-stream'],
  'chat-model': ['a2a', 'outbound-http', 'telemetry'],
  'local-cluster': ['a2a', 'client'],
  terminal: ['a2a', 'client', 'profiles'],
  cli: [
    'a2a',
    'task-audit',
    'client',
    'events',
    'lifecycle',
    'local-cluster',
    'log-jetstream',
    'profiles',
    'replay',
    'replay-server',
    'task-file',
    'task-transfer',
    'telemetry',
    'terminal',
  ],
  events: ['a2a'],
  'task-file': ['a2a', 'events'],
  profiles: ['events'],
  'task-view': ['a2a', 'profiles'],
  'openai-api': ['a2a', 'task-view'],
  'ag-ui': ['a2a', 'task-view'],
  'ui-message-stream': ['a2a', 'task-view'],
  task: ['a2a', 'events'],
  log: ['a2a', 'coalesce', 'events'],
  fold: ['a2a', 'coalesce', 'events', 'log', 'task'],
  'task-audit': ['a2a', 'events', 'log', 'task'],
  replay: ['a2a', 'coalesce', 'events', 'fold', 'log', 'task', 'task-file'],
  'log-jetstream': ['a2a', 'events', 'lifecycle', 'log', 'telemetry'],
  'context-history': ['a2a', 'events', 'log', 'profiles', 'task'],
  'task-transfer': ['a2a', 'context-history', 'events', 'log', 'task', 'task-file'],
  agent: ['a2a', 'context-history', 'events', 'log', 'profiles', 'task', 'telemetry'],
  'a2a-server': ['a2a', 'agent-card', 'context-history', 'events', 'log', 'task', 'telemetry'],
  'a2a-http': ['a2a', 'a2a-server', 'agent-card', 'events'],
  'a2a-grpc': ['a2a', 'a2a-server', 'agent-card'],
  'ai-sdk-http': ['a2a', 'a2a-http', 'a2a-server', 'ui-message-stream'],
  'openai-http': ['a2a', 'a2a-http', 'a2a-server', 'events', 'openai-api'],
  'ag-ui-http': ['a2a', 'a2a-http', 'a2a-server', 'ag-ui'],
  'replay-server': [
    'a2a',
    'a2a-grpc',
    'a2a-http',
    'a2a-server',
    'agent-card',
    'events',
    'log',
    'task',
    'task-file',
    'task-transfer',
    'telemetry',
  ],
  'agent-a2a': ['a2a', 'agent', 'agent-card', 'events', 'outbound-http', 'profiles'],
  'agent-code': ['a2a', 'agent', 'agent-langgraph', 'agent-mcp', 'telemetry'],
  'agent-langgraph': ['a2a', 'agent', 'outbound-http'],
  'agent-mcp': ['a2a', 'agent', 'outbound-http'],
  'agent-model': ['a2a', 'agent', 'agent-mcp', 'chat-model'],
  ingress: [
    'a2a',
    'a2a-server',
    'a2a-grpc',
    'a2a-http',
    'ag-ui-http',
    'agent-card',
    'ai-sdk-http',
    'endpoint',
    'events',
    'lifecycle',
    'log',
    'log-jetstream',
    'openai-http',
    'profiles',
    'task-audit',
    'task-file',
    'task-transfer',
    'telemetry',
    'webhook-guard',
  ],
  relay: ['a2a', 'coalesce', 'events', 'fold', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry'],
  console: ['a2a', 'a2a-http', 'client', 'endpoint', 'lifecycle', 'local-cluster', 'replay', 'task-audit', 'telemetry'],
  notifier: ['a2a', 'events', 'lifecycle', 'log', 'log-jetstream', 'task', 'telemetry', 'webhook-guard'],
  supervisor: [
    'a2a',
    'chat-model',
    'coalesce',
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
    'a2a',
    'a2a-server',
    'a2a-http',
    'agent',
    'agent-a2a',
    'agent-card',
    'agent-code',
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
  'task-file': ['node:crypto'],
  'task-view': [],
  'ui-message-stream': [],
  'openai-api': [],
  'ag-ui': [],
};

/** The only packages that may import the in-memory log. The replay server keeps its tasks there: they end with the process. */
export const MEMORY_LOG_IMPORTERS = ['log', 'replay-server'];

/** Only the command's own tests and the writer of its reference import it. Parts that others need are separate packages. */
export const COMMAND_IMPORTERS = ['packages/cli/', 'test/e2e/packages.test.ts', 'test/repo/cli-document.ts'];

/** The only folders that may import a NATS client. */
export const NATS_IMPORTERS = ['packages/log-jetstream', 'test'];

export const BANNED_NAMES = ['common', 'core', 'helper', 'helpers', 'manager', 'misc', 'shared', 'util', 'utils'];
