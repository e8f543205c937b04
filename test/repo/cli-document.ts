import { COMMANDS, isCommand } from '../../packages/cli/src/commands.ts';
import { helpText } from '../../packages/cli/src/help.ts';

const INTRO = `# The command \`hopline\`

Generated from \`packages/cli/src/commands.ts\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

In a checkout run it as \`npm run -s hopline -- COMMAND\`. Output, signals and the rules for pipes: [packages/cli](../../packages/cli/README.md).
`;

/** The text of docs/reference/cli.md. */
export function cliDocument(): string {
  const sections = ['' as const, ...Object.keys(COMMANDS).filter(isCommand)].map(command => {
    const heading = command === '' ? '' : `## ${command}\n\n`;
    return `${heading}\`\`\`text\n${helpText(command).trim()}\n\`\`\`\n`;
  });
  return [INTRO, ...sections].join('\n');
}
