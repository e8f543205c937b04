/** Test kits and test files are not production code. */
const TESTS = '!src/**/*.test*.ts!';

/** Test kits, examples, and APIs for users outside this repository. Re-exports in an index are checked where the name is defined. */
const FOR_OTHERS = [
  'infra/examples/**',
  // Documents that test/repo/write-reference.ts writes.
  'infra/nats/configuration.ts',
  'infra/image/bundle.ts',
  'infra/local/demo/*.ts',
  // Written to JSON by test/repo/write-reference.ts.
  'infra/observe/dashboards/{dashboards,grafana-json}.ts',
  'packages/*/src/**/{index,signing,*test-kit,memory-log}.ts',
  // Constructors for the authors of agents.
  'packages/agent/src/event-constructors.ts',
  'packages/a2a/src/fold.ts',
  // An entry of the client, for pages.
  'packages/client/src/{ai-sdk,chat-transport}.ts',
];

/**
 * `knip` reports unused code, tests included. `knip --production` reports code that only tests use: patterns that end in "!" are
 * production code. With `--production`, an export that its own file uses is not reported, because tests read bounds and inner functions through it.
 * An export for agent authors or other users of a package has the tag `@public`.
 * @type {(options: { production?: boolean }) => import('knip').KnipConfig}
 */
const config = ({ production = false }) => ({
  ignoreExportsUsedInFile: production,
  includeEntryExports: production,
  ignoreIssues: production ? Object.fromEntries(FOR_OTHERS.map(path => [path, ['exports', 'types']])) : {},
  workspaces: {
    '.': {
      ignoreDependencies: ['@biomejs/biome'],
    },
    'infra/local': {
      entry: [
        'launcher/main.ts!',
        'demo/guide.ts!',
        'picture/record.ts!',
        'bootstrap/main.mjs!',
        'bootstrap/package.mjs!',
        '**/*.test.{ts,mjs}',
      ],
      project: ['**/*.{ts,mjs}!', '!**/*.test.{ts,mjs}!'],
      ignoreDependencies: ['@modelcontextprotocol/server-filesystem'],
      // A program of util-linux, which records the picture of README.md.
      ignoreBinaries: ['script'],
    },
    'infra/nats': {
      entry: ['main.ts!', 'reload.ts!', '*.test.ts'],
      project: ['*.ts!', '!*.test.ts!'],
    },
    'infra/image': {
      entry: ['main.ts!', '*.test.ts'],
      project: ['*.ts!', '!*.test.ts!'],
      ignoreBinaries: ['ldd'],
    },
    'infra/observe': {
      entry: ['main.ts!', 'serve-nats-metrics.ts!', 'dashboards/dashboards.ts!', 'dashboards/grafana-json.ts!', '**/*.test.ts'],
      project: ['**/*.ts!', '!**/*.test.ts!'],
    },
    'infra/release': {
      entry: ['main.ts!', 'release.ts!', '*.test.ts'],
      project: ['*.ts!', '!*.test.ts!'],
    },
    'packages/*': {
      entry: ['src/**/*.test.ts'],
      project: ['src/**/*.ts!', TESTS],
    },
    // Their tests are in test/e2e.
    'packages/ag-ui-http': { project: ['src/**/*.ts!'] },
    'packages/openai-http': { project: ['src/**/*.ts!'] },
    'packages/a2a-grpc': {
      entry: ['src/**/*.test.ts', 'proto/write-descriptors.ts!'],
      project: ['src/**/*.ts!', 'proto/*.ts!', TESTS],
    },
    'services/*': {
      entry: ['src/main.ts!', 'src/**/*.test.ts'],
      project: ['src/**/*.ts!', TESTS],
    },
    'services/console': {
      entry: ['src/main.ts!', '{src,app}/**/*.test.ts'],
      project: ['{src,app}/**/*.{ts,tsx}!', '!{src,app}/**/*.test*.ts!'],
    },
    test: {
      entry: [
        '**/*.test.ts',
        '**/main.ts',
        'repo/write-*.ts',
        'kubernetes/{version-before.ts,load-client.mjs,schemas/write-schemas.ts}',
        'upgrade/record-cluster.ts',
        'conformance/tck.ts',
        'faults/campaign/agents/*.ts',
        'soak/agent.ts',
        'support/agents/graphs/*.ts',
        'support/profiles/*.ts',
      ],
      project: ['**/*.ts'],
      ignoreBinaries: ['helm', 'kubectl', 'mount', 'umount'],
      ignoreDependencies: ['@modelcontextprotocol/server-everything'],
    },
    'infra/examples': {
      entry: ['*/*.ts!'],
      project: ['**/*.ts!'],
      ignoreDependencies: ['@modelcontextprotocol/server-everything'],
    },
  },
});

export default config;
