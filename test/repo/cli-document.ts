import { commandHelp, overviewHelp } from '../../packages/cli/src/command/help.ts';
import { COMMANDS } from '../../packages/cli/src/commands.ts';

const INTRO = `# The command \`hopline\`

Generated from the commands of \`packages/cli/src\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

In a checkout run it as \`npm run -s hopline -- COMMAND\`; [other places](../guides/install.md). Output, signals and the rules for pipes: [packages/cli](../../packages/cli/README.md).
`;

/** The text of docs/reference/cli.md. */
export function cliDocument(): string {
  const block = (help: string) => `\`\`\`text\n${help.trim()}\n\`\`\`\n`;
  const sections = COMMANDS.map(command => `## ${command.name}\n\n${block(commandHelp(command))}`);
  return [INTRO, block(overviewHelp(COMMANDS)), ...sections].join('\n');
}
