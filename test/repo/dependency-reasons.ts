/** Why the image has npm packages that its own code imports. */
export type DependencyReason = {
  packages: readonly string[];
  purpose: string;
  /** Why Hopline does not have code of its own instead. */
  notOwn: string;
  keptBy: string;
};

/** `test/repo/dependencies.test.ts` compares these names with the packages that the sources of the image import. */
export const DEPENDENCY_REASONS: readonly DependencyReason[] = [
  {
    packages: ['@nats-io/nats-core', '@nats-io/jetstream', '@nats-io/transport-node'],
    purpose: 'The connection to NATS, and JetStream; only `packages/log-jetstream` imports them',
    notOwn: 'Reconnecting, authentication and flow control follow each release of nats-server',
    keptBy: 'the NATS authors (CNCF)',
  },
  {
    packages: ['fastify'],
    purpose: 'The HTTP servers of ingress, agents and console',
    notOwn: 'Limits, timeouts and closing of connections are where an HTTP server of our own would be attacked',
    keptBy: 'the Fastify team (OpenJS Foundation)',
  },
  {
    packages: ['undici'],
    purpose:
      'HTTP clients that need a connector of their own: webhooks to checked addresses, remote agents with TLS settings, the console',
    notOwn: 'It is the client behind the `fetch` of Node, whose global one cannot check the address that it connects to',
    keptBy: 'the Node.js project (OpenJS Foundation)',
  },
  {
    packages: ['@grpc/grpc-js'],
    purpose: 'The gRPC servers of A2A 1.0 and 0.3',
    notOwn: 'ADR 14: HTTP/2 framing and flow control are where a gRPC server of our own would be attacked',
    keptBy: 'the gRPC authors (CNCF)',
  },
  {
    packages: ['@bufbuild/protobuf'],
    purpose: 'The messages of gRPC, and their JSON',
    notOwn: 'ADR 14: a large format with its own JSON mapping; ADR 70 has the one hot path that is our own',
    keptBy: 'Buf',
  },
  {
    packages: ['jose'],
    purpose: 'Bearer tokens, keys of issuers, and signatures of agent cards',
    notOwn: 'Cryptography',
    keptBy: 'Filip Skokan',
  },
  {
    packages: ['canonicalize'],
    purpose: 'Canonical JSON (RFC 8785), over which an agent card is signed',
    notOwn: 'Written by an author of the RFC; a difference in one number would break signatures',
    keptBy: 'Samuel Erdtman',
  },
  {
    packages: ['ajv'],
    purpose: 'The check of each request against its schema',
    notOwn:
      'It compiles a schema into code, which a request on the hot path needs; one schema gives the type, the check and `/openapi.json`',
    keptBy: 'the Ajv team',
  },
  {
    packages: ['fast-json-patch'],
    purpose: 'The changes of state of AG-UI agents (JSON Patch, RFC 6902)',
    notOwn: 'Pointers and six operations with rules of their own; it refuses changes of prototypes',
    keptBy: 'its author, Starcounter-Jack; AG-UI’s own client uses it',
  },
  {
    packages: ['eventsource-parser'],
    purpose: 'Reads event streams of remote agents and of Hopline in the client',
    notOwn: 'The line rules of the HTML standard, with every split of a chunk',
    keptBy: 'Espen Hovlandsdal',
  },
  {
    packages: ['uuidv7'],
    purpose: 'Ids of tasks, which sort by time',
    notOwn: 'Ids that rise within one millisecond, even when the clock goes back (RFC 9562, 6.2)',
    keptBy: 'LiosK',
  },
  {
    packages: ['pino'],
    purpose: 'Log lines as JSON, and redaction',
    notOwn: 'Serializing without blocking the event loop',
    keptBy: 'the pino team',
  },
  {
    packages: [
      '@opentelemetry/api',
      '@opentelemetry/context-async-hooks',
      '@opentelemetry/exporter-logs-otlp-proto',
      '@opentelemetry/exporter-metrics-otlp-proto',
      '@opentelemetry/exporter-prometheus',
      '@opentelemetry/exporter-trace-otlp-proto',
      '@opentelemetry/resources',
      '@opentelemetry/sdk-logs',
      '@opentelemetry/sdk-metrics',
      '@opentelemetry/sdk-node',
      '@opentelemetry/sdk-trace',
    ],
    purpose: 'Traces, metrics and logs, as the `OTEL_*` variables configure them',
    notOwn: 'The standard that collectors read, with its exporters and their retries',
    keptBy: 'the OpenTelemetry authors (CNCF)',
  },
  {
    packages: ['close-with-grace'],
    purpose: 'Ends a service on signals and errors, once and in bounded time',
    notOwn: 'Small, and in use by every Fastify service; the order of signals, rejections and exceptions is easy to get wrong',
    keptBy: 'Matteo Collina',
  },
  {
    packages: ['fastest-levenshtein'],
    purpose: 'The suggestion in an error that names an unknown setting or field',
    notOwn: 'One function without dependencies; the first package to remove if its author stops',
    keptBy: 'Kasper U. Weihe',
  },
  {
    packages: ['@ai-sdk/openai-compatible', '@ai-sdk/provider'],
    purpose: 'Calls of model servers by the planner and by agents of adapter `model`',
    notOwn: 'The streams of model servers differ in tool calls, usage and errors, and change often',
    keptBy: 'Vercel',
  },
  {
    packages: ['@modelcontextprotocol/client'],
    purpose: 'The client of MCP servers',
    notOwn: 'The reference implementation of a protocol that changes each half year',
    keptBy: 'the Model Context Protocol project',
  },
  {
    packages: ['@modelcontextprotocol/server-filesystem'],
    purpose: 'The files agent of the demo (`/app/demo/files-server.mjs`); no service loads it',
    notOwn: 'The demo shows an MCP server that others wrote',
    keptBy: 'the Model Context Protocol project',
  },
  {
    packages: ['preact'],
    purpose: "The console's page",
    notOwn: 'The smallest renderer with the API that engineers know',
    keptBy: 'the Preact team',
  },
  {
    packages: ['@tanstack/virtual-core'],
    purpose: "Long lists on the console's page",
    notOwn: 'Scrolling over rows of different heights, across browsers',
    keptBy: 'Tanner Linsley and the TanStack team',
  },
  {
    packages: ['uplot'],
    purpose: "The chart of rates on the console's page",
    notOwn: 'A canvas chart that keeps up with a stream, in 50 KB',
    keptBy: 'Leon Sorokin',
  },
];
