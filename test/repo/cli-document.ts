import { HELP } from '../../packages/cli/src/help.ts';

const INTRO = `# The command \`hopline\`

Generated from \`packages/cli/src/help.ts\` by \`node test/repo/write-reference.ts\`. Do not edit by hand.

In a checkout run it as \`npm run -s hopline -- COMMAND\`. Output, signals and the rules for pipes: [packages/cli](../../packages/cli/README.md).
`;

/** The text of docs/reference/cli.md. */
export function cliDocument(): string {
  const sections = Object.entries(HELP).map(([command, text]) => {
    const heading = command === '' ? '' : `## ${command}\n\n`;
    return `${heading}\`\`\`text\n${text.trim()}\n\`\`\`\n`;
  });
  return [INTRO, ...sections].join('\n');
}
