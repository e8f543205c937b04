import { noticePrinter } from '@hopline/terminal';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';

export const card = command({
  name: 'card',
  summary: 'prints the name, address and skills of the server',
  details: '--json prints the agent card',
  options: {},
  async run(_given, { client, output, json, signal }) {
    const { json: whole, agent } = await client.card({ signal, onNotice: noticePrinter(output) });
    if (json) output.line(JSON.stringify(whole));
    else {
      output.line(agent.description === '' ? agent.name : `${agent.name}: ${agent.description}`);
      output.line(`${agent.url} (A2A ${agent.dialect}${agent.streaming ? ', streaming' : ''})`);
      for (const { id, description, tags } of agent.skills) {
        output.line(`  ${id}${description === '' ? '' : `: ${description}`}${tags.length > 0 ? ` [${tags.join(', ')}]` : ''}`);
      }
    }
    return EXIT.ok;
  },
});
