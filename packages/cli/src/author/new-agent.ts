import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { AGENT_NAME_RULE, isAgentName } from '@hopline/events';
import { shellQuoted } from '@hopline/local-cluster';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { codeOfFault } from '../command/input-file.ts';
import { text } from '../command/options.ts';
import { pair } from '../command/subjects.ts';
import { UsageError } from '../command/usage-error.ts';
import { VERSION } from '../version.ts';

/** Versions of the tools in a new folder; a test compares them with those of this repository. */
export const TYPESCRIPT_VERSION = '7.0.2';
export const NODE_TYPES_VERSION = '26.6.6';

/**
 * The oldest Node that runs the TypeScript of a new folder. `npm test` in that folder runs under the user's Node, not the one that Hopline
 * provides.
 */
const NODE_MIN = '22.18';

/** No registry has these packages, so a new agent installs their tarballs. */
const PACKAGES = ['agent', 'cli'] as const;

export const newAgent = command({
  name: 'new',
  subject: pair('agent NAME', '`agent` and its name'),
  summary: 'writes the folder of a new agent: TypeScript, a test, package.json',
  asksNoServer: true,
  options: {
    packages: text(
      'DIR',
      'the folder with the tarballs of @hopline/agent and @hopline/cli, which are not published yet; default: `dist` of the checkout, where `npm run pack` writes them',
      'files',
    ),
  },
  async run({ subject: [what, name], options: { packages } }, context) {
    if (what !== 'agent') throw new UsageError(`new makes an agent: hopline new agent NAME; see hopline new --help`);
    writeAgent(name, packages, context);
    return EXIT.ok;
  },
});

type Surroundings = Pick<CommandContext, 'folder' | 'output' | 'own'>;

/**
 * Writes the folder `name` with an agent, its test, and everything that both need. Never replaces a file. `packages`: the folder with the
 * tarballs of PACKAGES.
 */
export function writeAgent(name: string, packages: string | undefined, { folder, output, own }: Surroundings): void {
  if (!isAgentName(name)) throw new UsageError(`the name must be ${AGENT_NAME_RULE}; see hopline new --help`);
  const target = resolve(folder, name);
  const tarballs = packages === undefined ? own.tarballs?.folder : resolve(folder, packages);
  if (tarballs === undefined)
    throw new UsageError(
      'the packages of Hopline are not published yet: name the folder of their tarballs with --packages DIR (`npm run pack` in a checkout writes them)',
    );
  const missing = PACKAGES.map(tarballOf).find(file => !existsSync(join(tarballs, file)));
  if (missing !== undefined && packages !== undefined) throw new UsageError(`there is no ${missing} in ${packages}`);
  makeEmpty(target, name);
  for (const [file, content] of Object.entries(filesOf(name, relative(target, tarballs))))
    writeFileSync(join(target, file), content);
  const pack = missing === undefined || own.tarballs === undefined ? '' : `${own.tarballs.pack} && `;
  output.line(`${name}/ is ready, for Node ${NODE_MIN} or newer: ${pack}cd ${shellQuoted(name)} && npm install && npm test`);
}

const tarballOf = (name: string) => `hopline-${name}-${VERSION}.tgz`;

function makeEmpty(target: string, name: string): void {
  try {
    mkdirSync(target, { recursive: true });
    if (readdirSync(target).length === 0) return;
  } catch (error) {
    throw new UsageError(`the folder ${name} cannot be created (${codeOfFault(error)})`);
  }
  throw new UsageError(`the folder ${name} is not empty: choose another name`);
}

/** The files of a new agent. `tarballs`: the folder with the tarballs, relative to the new folder. */
export function filesOf(name: string, tarballs: string): Record<string, string> {
  return {
    'package.json': `${JSON.stringify(manifestOf(name, tarballs.split(sep).join('/')), null, 2)}\n`,
    'tsconfig.json': `${JSON.stringify(TSCONFIG, null, 2)}\n`,
    '.gitignore': 'node_modules/\n',
    'agent.ts': quoted(AGENT).replaceAll('NAME', name),
    'agent.test.ts': quoted(TEST),
    'README.md': README.replaceAll('NAME', name),
  };
}

function manifestOf(name: string, tarballs: string) {
  const [agent, cli] = PACKAGES.map(one => `file:${tarballs}/${tarballOf(one)}`);
  return {
    name,
    version: '0.0.0',
    private: true,
    type: 'module',
    // The first version that runs TypeScript without an option.
    engines: { node: `>=${NODE_MIN}` },
    scripts: {
      start: 'hopline agent ./agent.ts --watch',
      ask: `hopline ask --agent ${name}`,
      // The command names the test files, because a Node without TypeScript support would find no tests and pass.
      test: 'node --test *.test.ts',
      check: 'tsc',
    },
    dependencies: { '@hopline/agent': agent },
    devDependencies: { '@hopline/cli': cli, '@types/node': NODE_TYPES_VERSION, typescript: TYPESCRIPT_VERSION },
  };
}

const TSCONFIG = {
  compilerOptions: {
    strict: true,
    noEmit: true,
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    skipLibCheck: true,
  },
  include: ['*.ts'],
};

/** The release rewrites each import in a source, even within a template, so the templates use « and » for quotes. */
const quoted = (template: string) => template.replaceAll(/[«»]/g, "'");

const AGENT = `import { artifact, defineAgent, notice } from «@hopline/agent»;

export default defineAgent({
  name: 'NAME',
  description: 'Greets people by name',
  skills: ['Greet a person'],
  async *run(turn) {
    yield notice('Choosing a greeting');
    for (const word of ['Hello', ', ', turn.text, '!\\n']) yield word;
    yield artifact({ name: 'card.md', text: \`# For \${turn.text}\\n\` });
  },
});
`;

const TEST = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { playTurn } from «@hopline/agent/test-kit»;
import agent from «./agent.ts»;

test('greets by name and makes a card', async () => {
  const { text, artifacts, notices, end } = await playTurn(agent, 'Ada');
  assert.equal(text, 'Hello, Ada!\\n');
  assert.deepEqual(notices, ['Choosing a greeting']);
  assert.equal(artifacts[0]?.name, 'card.md');
  assert.equal(end.state, 'TASK_STATE_COMPLETED');
});
`;

const README = `# NAME

An agent for Hopline. \`agent.ts\` is the agent, \`agent.test.ts\` plays a turn without a cluster.

    npm install
    npm test          # Node ${NODE_MIN} or newer
    npm run check     # types
    npm start         # joins the cluster of \`npm start\` in a Hopline checkout (HOPLINE_HOME or NATS_URL), restarts on change

Ask it: \`npm run -s ask -- Ada\`
`;
