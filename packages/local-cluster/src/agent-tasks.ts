import { readFileSync } from 'node:fs';
import { A2AError, isObject, type JsonObject } from '@hopline/a2a';
import { credentialHeaders, type EntryHeaders } from '@hopline/agent-a2a/credential-headers';
import { createClient } from '@hopline/client';
import { EnvironmentError } from './environment-error.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** The fields of an entry of an agents file that a request to its agent needs. */
type Entry = EntryHeaders & { name: string; url: string };

/** A cluster that does not answer must not hold up the tree. */
const RETRY = { unreachedTriesMax: 1, triesMax: 1 };

/** A task on an agent's server: its audit, or the reason why there is none. */
export type AgentTaskAudit = { url?: string; report?: JsonObject; fault?: string };

/**
 * Reads audits of tasks at the remote agents that an agents file names, and sends requests to their addresses only. `credentials`: the environment
 * with the variables that the entries name; without it, requests have no credentials. Throws EnvironmentError for a file that is not an agents file.
 */
export function agentTasks(
  file: string,
  credentials: Environment | undefined,
): (agent: string, taskId: string, signal: AbortSignal) => Promise<AgentTaskAudit> {
  const entries = new Map(entriesOf(file).map(entry => [entry.name, entry]));
  return async (agent, taskId, signal) => {
    const entry = entries.get(agent);
    if (entry === undefined) return { fault: 'the agents file has no address for this agent' };
    const { url } = entry;
    let headers = {};
    try {
      if (credentials !== undefined) headers = credentialHeaders(entry, variable => credentials[variable], 'omit');
    } catch (thrown) {
      return { url, fault: (thrown as Error).message };
    }
    try {
      const client = createClient({ url, headers, retry: RETRY });
      return { url, report: await client.audit(taskId, { signal }) };
    } catch (thrown) {
      signal.throwIfAborted();
      return { url, fault: thrown instanceof A2AError ? thrown.message : 'the cluster did not answer with an audit' };
    }
  };
}

function entriesOf(file: string): Entry[] {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(file, 'utf8'));
  } catch (thrown) {
    const { code = 'not JSON' } = thrown as NodeJS.ErrnoException;
    throw new EnvironmentError(`${file} is not an agents file (${code})`);
  }
  if (!isObject(content) || !Array.isArray(content.agents))
    throw new EnvironmentError(`${file} is not an agents file (no list "agents")`);
  return content.agents.filter(
    (entry): entry is Entry => isObject(entry) && entry.adapter === 'a2a' && typeof entry.url === 'string',
  );
}
