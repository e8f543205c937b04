import { isObject } from '@hopline/a2a';
import { LINE } from '@hopline/telemetry';
import type { Output } from '@hopline/terminal';

/**
 * Prints one output line of a sub-agent process for a person. Lines of the process log are summarized. The agent's author may print
 * anything, even JSON, so every other line is printed unchanged.
 */
export function showAgentLine(
  text: string,
  { output, commandLine }: { output: Output; commandLine: (args: string) => string },
): void {
  const line = parseLine(text);
  if (line === undefined || typeof line.level !== 'string' || typeof line.msg !== 'string') {
    output.warn(text);
    return;
  }
  const { level, msg, agent, err } = line;
  // For the operator of the cluster, who gives logins to services. An author's process has the login of its cluster.
  if (msg === LINE.loginWide) return;
  if (msg === 'agent listening') {
    output.line(`${agent} is running (${line.url}); try: ${commandLine(`ask --agent ${agent}`)} TEXT`);
    return;
  }
  const state = stringIn(line, 'state');
  const summary = [msg, state, stringIn(line, 'reason'), stringIn(line, 'path')].filter(Boolean).join(' · ');
  if (level === 'warn' || level === 'error' || level === 'fatal') output.warn(`${summary}${describeError(err)}`);
  else if (agent !== undefined) output.line(summary);
}

type Line = Readonly<Record<string, unknown>>;

function stringIn(line: Line, member: string): string | undefined {
  const value = line[member];
  return typeof value === 'string' ? value : undefined;
}

/** The message of an error and, when its cause has one, the stack that leads to the author's file. */
function describeError(error: unknown): string {
  const message = isObject(error) ? stringIn(error, 'message') : undefined;
  if (!isObject(error) || message === undefined) return '';
  const { cause } = error;
  return isObject(cause) ? `: ${message}: ${stringIn(cause, 'stack') ?? stringIn(cause, 'message') ?? ''}` : `: ${message}`;
}

function parseLine(text: string): Line | undefined {
  try {
    const line: unknown = JSON.parse(text);
    return isObject(line) ? line : undefined;
  } catch {
    return undefined;
  }
}
