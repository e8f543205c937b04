/** The packages that people install. All other packages are internal, and are contained in them. */
export const PUBLIC_PACKAGES = [
  {
    folder: 'packages/client',
    description: 'A typed A2A client that resumes interrupted streams, for Node and browsers',
    keywords: ['a2a', 'agent2agent', 'sse', 'client'],
    /** Entries for the console. They are not published, because they change without a new major version. */
    internal: ['./approval-response', './outgoing', './sleep', './stream-position'],
  },
  {
    folder: 'packages/agent',
    description: 'Write an A2A agent as one function, and test it without a cluster',
    keywords: ['a2a', 'agent2agent', 'agent'],
    /** Packages that the code imports when they are needed: for `model`, and for telemetry, which an agent under test does not start. */
    optional: [
      '@ai-sdk/openai-compatible',
      '@ai-sdk/provider',
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
  },
  {
    folder: 'packages/react',
    description: 'React hooks for tasks and chats of A2A agents behind Hopline',
    keywords: ['a2a', 'agent2agent', 'react', 'hooks'],
    /** A page has one copy of the client, because the stores recognize its errors by their class. */
    shared: 'packages/client',
  },
  {
    folder: 'packages/cli',
    description: 'The hopline command: ask agents, follow and trace their tasks, run an agent of your own',
    keywords: ['a2a', 'agent2agent', 'cli'],
    /** The page of `hopline view`. */
    files: ['services/console/dist/file-page.html'],
  },
] as const;

export type PublicPackage = (typeof PUBLIC_PACKAGES)[number];

/** The published entries of a package: its `exports` without the internal ones, by their specifiers. */
export function publicEntries(target: PublicPackage, exports: Readonly<Record<string, string>> = {}): [string, string][] {
  const internal: readonly string[] = 'internal' in target ? target.internal : [];
  const unknown = internal.find(entry => exports[entry] === undefined);
  if (unknown !== undefined) throw new Error(`${target.folder} has no entry ${unknown}`);
  return Object.entries(exports).filter(([entry]) => !internal.includes(entry));
}

/** Oldest Node that the published packages support. A test installs them there. */
export const NODE_MIN = '>=20.19';
