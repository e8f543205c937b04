import type { AgentSkill } from '@hopline/a2a';
import { apiKeyHeader, type ListedProcess, shellQuoted, URL_DEFAULT } from '@hopline/local-cluster';

const JSON_HEADER = "-H 'content-type: application/json'";

type NextSteps = {
  url: string;
  /** How to run `hopline` here. */
  command: string;
  /** The home of this cluster; undefined if it is the one that `hopline` finds by itself. */
  home?: string | undefined;
  question: string;
  /** The agent to ask. Absent: the skills decide. */
  agent?: string | undefined;
  processes: ListedProcess[];
  /** The header that a caller sends; undefined if the cluster requires no credentials. */
  credentials?: CallerCredentials | undefined;
  /** The demo's task and the cursor of one of its frames; null when the demo did not run. */
  resume: { taskId: string; cursor: string } | null;
};

/** `variable`: the variable from which `hopline` commands, and the hints, read the credentials. */
type CallerCredentials = { variable: 'HOPLINE_API_KEY' | 'HOPLINE_TOKEN'; header: string };

/** Undefined if the settings require no credentials. */
export function callerCredentials(settings: Readonly<Record<string, string | undefined>>): CallerCredentials | undefined {
  if (settings.HOPLINE_AUTH_API_KEYS_FILE)
    return { variable: 'HOPLINE_API_KEY', header: `${apiKeyHeader(settings)}: $HOPLINE_API_KEY` };
  if (settings.HOPLINE_AUTH_ISSUER) return { variable: 'HOPLINE_TOKEN', header: 'authorization: Bearer $HOPLINE_TOKEN' };
  return undefined;
}

/** For an agent whose skills have no example. */
const QUESTION_FOR_ANY_AGENT = 'Hello, what can you do?';

/** A question for an agent with these skills: the first example that fits into a command line. */
export function questionFor(skills: readonly Pick<AgentSkill, 'examples'>[]): string {
  return skills.flatMap(({ examples = [] }) => examples).find(text => ONE_LINE.test(text)) ?? QUESTION_FOR_ANY_AGENT;
}

/** Text without control characters, which could move the cursor of a terminal. */
const ONE_LINE = /^\P{C}{1,200}$/u;

/** Commands to try, with the values of this cluster. */
export function nextSteps({ url, command, home, question, agent, processes, credentials, resume }: NextSteps): string[] {
  // In double quotes the shell expands the variable, so the credentials themselves are not printed.
  const curl = `curl -N ${url} ${JSON_HEADER}${credentials === undefined ? '' : ` -H "${credentials.header}"`}`;
  const local = home === undefined ? command : `HOPLINE_HOME=${shellQuoted(home)} ${command}`;
  const relay = processes.find(({ service }) => service === 'relay');
  const page = processes.find(({ service }) => service === 'console')?.url;
  const { taskId, cursor } = resume ?? { taskId: 'TASK_ID', cursor: 'FRAME_ID' };
  const resubscribe = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tasks/resubscribe', params: { id: taskId } });
  const source = resume ? 'here: the task above, after one of its frames' : 'insert a task id and a frame id from 1';
  return [
    'Try next, in a second terminal:',
    '',
    ...(credentials === undefined ? [] : [`This cluster requires credentials: export ${credentials.variable}=… first.`, '']),
    '1. Send a question yourself (Ctrl-C leaves the task running), with the command or over HTTP:',
    `   ${command} ask${agent === undefined ? '' : ` --agent ${agent}`}${url === URL_DEFAULT ? '' : ` --url ${url}`} ${shellQuoted(question)}`,
    `   ${curl} -d ${shellQuoted(streamRequest(question, agent))}`,
    '',
    `2. Resume an interrupted stream after the id of the last frame you received (${source}):`,
    `   ${curl} -H 'Last-Event-ID: ${cursor}' -d ${shellQuoted(resubscribe)}`,
    '',
    '3. Kill the relay while 1 is streaming; it is restarted and no character is lost:',
    `   kill -9 ${relay?.pid ?? 'PID'}`,
    '',
    '4. Watch the cluster, in a browser or here:',
    ...(page ? [`   ${page}/${resume ? `tasks/${taskId}` : ''}`] : []),
    `   ${local} status`,
    `   ${local} logs -f`,
    '',
  ];
}

/** A request of the 0.3 dialect, which needs no version header. */
function streamRequest(text: string, agent: string | undefined): string {
  const metadata = agent === undefined ? {} : { metadata: { agent } };
  const message = { kind: 'message', role: 'user', messageId: 'message-1', parts: [{ kind: 'text', text }], ...metadata };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: { message } });
}
