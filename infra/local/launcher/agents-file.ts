import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { LaunchError } from './launch-error.ts';

const AGENTS_MAX = 64;
/** An entry travels to its sub-agent in one environment variable, which Linux limits to 128 KiB. */
const ENTRY_CHARS_MAX = 64 * 1024;
const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** One agent as the file has it. Everything but the name is checked by the sub-agent that runs it. */
export type AgentEntry = { name: string; adapter: string; [field: string]: unknown };
export type AgentsFile = { agents: AgentEntry[]; folder: string };

/** Throws a LaunchError that names the file and its fault. Relative paths inside are relative to `folder`. */
export function readAgentsFile(path: string): AgentsFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new LaunchError(
      `The agents file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}); name another with --agents FILE.`,
    );
  }
  try {
    return { agents: parseAgents(text), folder: dirname(path) };
  } catch (error) {
    throw new LaunchError(`The agents file ${path} ${(error as Error).message}.`);
  }
}

/** Throws an Error whose message goes on after "The agents file". */
export function parseAgents(text: string): AgentEntry[] {
  const agents = (parseJson(text) as { agents?: unknown } | null)?.agents;
  if (!Array.isArray(agents)) throw new Error('must be an object with a list "agents"');
  if (agents.length === 0) throw new Error('names no agent; give at least one');
  if (agents.length > AGENTS_MAX) throw new Error(`names ${agents.length} agents; ${AGENTS_MAX} is the most`);
  const names = new Set<string>();
  for (const [index, agent] of agents.entries()) {
    const name = checkEntry(agent, index);
    if (names.has(name)) throw new Error(`names the agent "${name}" twice; give each its own name`);
    names.add(name);
  }
  return agents;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`is not JSON (${(error as Error).message})`);
  }
}

function checkEntry(agent: unknown, index: number): string {
  const { name, adapter } = (agent ?? {}) as Partial<AgentEntry>;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new Error(`needs a name for agent ${index + 1}: lower-case letters, digits and "-", at most 32`);
  }
  if (typeof adapter !== 'string' || adapter === '')
    throw new Error(`needs an "adapter" for the agent "${name}": a2a, langgraph, mcp, model, module or recording`);
  if (JSON.stringify(agent).length > ENTRY_CHARS_MAX)
    throw new Error(`has more than ${ENTRY_CHARS_MAX} characters for the agent "${name}"`);
  return name;
}
