import type { ListedAgent } from '@hopline/client';
import { layOut, noticePrinter } from '@hopline/terminal';
import { type CommandContext, command } from '../command/command.ts';
import { EXIT, type ExitCode } from '../command/exit-code.ts';
import { agentState } from './agent-state.ts';

/** Skills named in one line; the agent of a tool server may have hundreds. */
const SKILLS_MAX = 12;

export const agents = command({
  name: 'agents',
  summary: 'lists the agents of the server: name, state, skills',
  details: '* marks the agent for questions that fit no skill',
  options: {},
  run: (_given, context) => listAgents(context),
});

/** Prints the agents of the server, their state and their skills. */
export async function listAgents({ client, output, json, signal, own }: CommandContext): Promise<ExitCode> {
  const list = await client.agents({ signal, onNotice: noticePrinter(output) });
  if (json) {
    for (const agent of list) output.line(JSON.stringify(agent));
    return EXIT.ok;
  }
  const now = Date.now();
  const width = Math.max(...list.map(({ name }) => name.length));
  for (const agent of list)
    for (const line of layOut(fieldsOf(agent, now, width), output.columns ?? Number.POSITIVE_INFINITY)) output.line(line);
  if (list.length === 0) output.warn(`the server has no agents: add one with: ${own.prefix} agent FILE`);
  return EXIT.ok;
}

function fieldsOf(
  { name, description, skills, default: isDefault, lastSeenAt, ...condition }: ListedAgent,
  now: number,
  width: number,
): string[] {
  const seen = `${agentState(condition)}${lastSeenAt === undefined ? '' : `, seen ${ageOf(lastSeenAt, now)}`}`;
  const names = skills.slice(0, SKILLS_MAX).map(skill => skill.name);
  const more = skills.length > SKILLS_MAX ? [`${skills.length - SKILLS_MAX} more`] : [];
  const shown = names.length === 0 ? [] : [`[${[...names, ...more].join(', ')}]`];
  return [`${isDefault ? '*' : ' '} ${name.padEnd(width)}`, seen, description, ...shown];
}

function ageOf(time: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return 'at an unknown time';
  return seconds < 120
    ? `${seconds} s ago`
    : seconds < 7_200
      ? `${Math.round(seconds / 60)} m ago`
      : `${Math.round(seconds / 3600)} h ago`;
}
