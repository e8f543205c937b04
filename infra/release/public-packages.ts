/** The packages that people install. All other packages are internal, and are contained in them. */
export const PUBLIC_PACKAGES = [
  {
    folder: 'packages/client',
    description: 'A typed A2A client that resumes interrupted streams, for Node and browsers',
    keywords: ['a2a', 'agent2agent', 'sse', 'client'],
  },
  {
    folder: 'packages/agent',
    description: 'Write an A2A agent as one function, and test it without a cluster',
    keywords: ['a2a', 'agent2agent', 'agent'],
  },
  {
    folder: 'packages/cli',
    description: 'The hopline command: ask agents, follow and trace their tasks, run an agent of your own',
    keywords: ['a2a', 'agent2agent', 'cli'],
  },
] as const;

export type PublicPackage = (typeof PUBLIC_PACKAGES)[number];

/** Oldest Node that the published packages support. A test installs them there. */
export const NODE_MIN = '>=20.19';
