import { join } from 'node:path';
import { Application, LogLevel, type TypeDocOptions } from 'typedoc';

/** Entry points with public names. The command has no such entry point. */
export const ENTRY_POINTS = [
  'packages/client/src/index.ts',
  'packages/client/src/tasks.ts',
  'packages/client/src/ai-sdk.ts',
  'packages/agent/src/index.ts',
  'packages/agent/src/test-kit.ts',
  'packages/agent/src/recording/index.ts',
];

/**
 * Writes the API reference of the public packages as HTML into `outFolder`. Resolves with its faults, such as a public name without a
 * comment.
 */
export async function writeApiReference(root: string, outFolder: string | undefined): Promise<string[]> {
  const problems: string[] = [];
  const options: TypeDocOptions = {
    name: 'Hopline',
    entryPoints: ENTRY_POINTS.map(path => join(root, path)),
    tsconfig: join(root, 'infra', 'release', 'tsconfig.typedoc.json'),
    readme: 'none',
    // `npm test` checks the types of the same sources, as for the packages (compile.ts).
    skipErrorChecking: true,
    // Types of internal packages are shown where they are used, not listed separately.
    validation: { notExported: false, invalidLink: true, notDocumented: true },
    packagesRequiringDocumentation: ['@hopline/client', '@hopline/agent'],
    requiredToBeDocumented: ['Function', 'Class', 'Interface', 'TypeAlias', 'Variable', 'Enum'],
    excludePrivate: true,
    githubPages: false,
    disableSources: true,
  };
  const app = await Application.bootstrap(options);
  app.logger = Object.assign(Object.create(app.logger), {
    log: (message: string, level: LogLevel) => {
      if (level >= LogLevel.Warn) problems.push(message);
    },
  });
  const project = await app.convert();
  if (project === undefined) return [...problems, 'the sources cannot be read'];
  app.validate(project);
  if (outFolder !== undefined) await app.generateDocs(project, outFolder);
  return problems;
}
