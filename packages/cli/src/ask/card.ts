import { cutIndex } from '@hopline/a2a';
import { plural } from '@hopline/task-audit/waterfall';
import { noticePrinter } from '@hopline/terminal';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';

/** Characters of a description that are printed. Tools of MCP servers describe themselves in whole paragraphs. */
const DESCRIPTION_CHARS_MAX = 100;

export const card = command({
  name: 'card',
  summary: 'prints the name, address and skills of the server, and how its card deviates from A2A',
  details: 'the first sentence of each skill; --json prints the agent card',
  options: {},
  async run(_given, { client, output, json, signal }) {
    const { json: whole, agent, findings } = await client.card({ signal, onNotice: noticePrinter(output) });
    if (json) output.line(JSON.stringify(whole));
    else {
      output.line(agent.description === '' ? agent.name : `${agent.name}: ${agent.description}`);
      output.line(`${agent.url} (A2A ${agent.dialect}${agent.streaming ? ', streaming' : ''})`);
      for (const { id, description, tags } of agent.skills) {
        output.line(
          `  ${id}${description === '' ? '' : `: ${firstSentence(description)}`}${tags.length > 0 ? ` [${tags.join(', ')}]` : ''}`,
        );
      }
      output.line(
        findings.length === 0 ? 'no findings: the card follows A2A' : `${plural(findings.length, 'finding')} about the card:`,
      );
      for (const finding of findings) output.line(`  ${finding}`);
    }
    return EXIT.ok;
  },
});

function firstSentence(description: string): string {
  const [sentence = ''] = /^.*?[.!?](?=\s|$)|^.*$/.exec(description.trim().replaceAll(/\s+/g, ' ')) ?? [];
  if (sentence.length <= DESCRIPTION_CHARS_MAX) return sentence;
  return `${sentence.slice(0, cutIndex(sentence, DESCRIPTION_CHARS_MAX)).replace(/\s\S*$/, '')}…`;
}
