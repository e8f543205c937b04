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
  // Entries of the client, for pages.
  'packages/client/src/{ai-sdk,chat-transport,tasks}.ts',
  // Hooks for pages.
  'packages/react/src/*.ts',
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
      // The files of a new project, and the site, which has its own lockfile.
      ignore: ['infra/create-hopline/**', 'infra/site/**'],
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
      entry: ['main.ts!', 'release.ts!', 'dry-run.ts!', 'convert-values.ts!', '*.test.ts'],
      project: ['*.ts!', '!*.test.ts!'],
    },
    'packages/*': {
      entry: ['src/**/*.test.ts'],
      project: ['src/**/*.ts!', TESTS],
    },
    // Their tests are in test/e2e and test/integration.
    'packages/ag-ui-http': { entry: ['src/**/*.test.ts'], project: ['src/**/*.ts!', TESTS] },
    'packages/durable-streams-http': { entry: ['src/**/*.test.ts'], project: ['src/**/*.ts!', TESTS] },
    'packages/react': { project: ['src/**/*.ts!'] },
    'packages/openai-http': { entry: ['src/**/*.test.ts'], project: ['src/**/*.ts!', TESTS] },
    'packages/a2a-grpc': {
      entry: ['src/**/*.test.ts', 'proto/write-descriptors.ts!'],
      project: ['src/**/*.ts!', 'proto/*.ts!', TESTS],
    },
    'services/*': {
      entry: ['src/main.ts!', 'src/**/*.test.ts'],
      project: ['src/**/*.ts!', TESTS],
    },
    'services/console': {
      // vite.config.ts replaces `node:crypto` with sha-256.ts.
      entry: ['src/main.ts!', 'app/sha-256.ts!', '{src,app}/**/*.test.ts'],
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
        // A hook puts it in the place of the launcher's module.
        'support/cluster/bundled-installation.ts',
        'support/profiles/*.ts',
      ],
      // Components of Svelte are texts of a test.
      svelte: false,
      project: ['**/*.ts'],
      ignoreBinaries: ['helm', 'kubectl', 'mount', 'umount'],
      ignoreDependencies: ['@modelcontextprotocol/server-everything'],
    },
    'infra/examples': {
      entry: ['*/*.ts!', 'ai-sdk/{main.mjs,page.jsx}!'],
      project: ['**/*.{ts,mjs,jsx}!'],
      // Not in the workspace: its packages are installed by its own command.
      ignore: ['copilotkit/**'],
      ignoreDependencies: ['@modelcontextprotocol/server-everything'],
    },
  },
});

export default config;
