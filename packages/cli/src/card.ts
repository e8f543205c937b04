import { noticePrinter } from '@hopline/terminal';
import type { CommandContext } from './command.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

/** `hopline card`: prints the name, address and skills of the server. */
export async function card(context: CommandContext): Promise<ExitCode> {
  const { client, output, json, signal } = context;
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
}
