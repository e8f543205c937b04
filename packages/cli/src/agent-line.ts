import { isObject } from '@hopline/a2a';
import type { Output } from './output.ts';

/** One line that a sub-agent process has written, for a person. Its author may print anything, also JSON: only lines of the process's own log are read, everything else is shown as it is. */
export function showAgentLine(text: string, { output, urlOption }: { output: Output; urlOption: string }): void {
  const line = parse(text);
  if (line === undefined || typeof line.level !== 'string' || typeof line.msg !== 'string') {
    output.warn(text);
    return;
  }
  const { level, msg, agent, err } = line;
  if (msg === 'agent serves') {
    output.line(`${agent} serves (${line.url}); ask it: hopline ask --agent ${agent}${urlOption} TEXT`);
    return;
  }
  const state = stringIn(line, 'state')?.replace('TASK_STATE_', '').toLowerCase();
  const told = [msg, state, stringIn(line, 'reason'), stringIn(line, 'path')].filter(Boolean).join(' · ');
  if (level === 'warn' || level === 'error' || level === 'fatal') output.warn(`${told}${faultOf(err)}`);
  else if (agent !== undefined) output.line(told);
}

type Line = Readonly<Record<string, unknown>>;

function stringIn(line: Line, member: string): string | undefined {
  const value = line[member];
  return typeof value === 'string' ? value : undefined;
}

/** What went wrong and, where the fault lies in a file of the author, where. */
function faultOf(fault: unknown): string {
  const message = isObject(fault) ? stringIn(fault, 'message') : undefined;
  if (!isObject(fault) || message === undefined) return '';
  const { cause } = fault;
  return isObject(cause) ? `: ${message}: ${stringIn(cause, 'stack') ?? stringIn(cause, 'message') ?? ''}` : `: ${message}`;
}

function parse(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return isObject(line) ? line : undefined;
  } catch {
    return undefined;
  }
}
