import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { suggestion } from '@hopline/lifecycle';
import { LaunchError } from './launch-error.ts';

const AGENTS_MAX = 64;
/** `$schema` names docs/reference/agents.schema.json for editors. */
const KEYS = ['$schema', 'agents'];
/** A sub-agent receives its entry in one environment variable, which Linux limits to 128 KiB. */
const ENTRY_CHARS_MAX = 64 * 1024;
const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** One entry of the file. The sub-agent that runs it checks everything except name and adapter. */
export type AgentEntry = { name: string; adapter: string; [field: string]: unknown };
export type AgentsFile = { agents: AgentEntry[]; folder: string; path: string };

/** Throws a LaunchError that names the file and its fault. Paths in the file are relative to `folder`. */
export function readAgentsFile(path: string): AgentsFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new LaunchError(
      `the agents file ${path} cannot be read (${(error as NodeJS.ErrnoException).code}); choose another with --agents FILE`,
    );
  }
  try {
    return { agents: parseAgents(text), folder: dirname(path), path: resolve(path) };
  } catch (error) {
    throw new LaunchError(`the agents file ${path} ${(error as Error).message}`);
  }
}

/** Throws an Error whose message continues the sentence "the agents file …". */
export function parseAgents(text: string): AgentEntry[] {
  const content = parseJson(text) as { agents?: unknown } | null;
  const isObject = typeof content === 'object' && content !== null && !Array.isArray(content);
  const unknown = isObject ? Object.keys(content).find(key => !KEYS.includes(key)) : undefined;
  if (unknown !== undefined) throw new Error(`contains the unknown member "${unknown}"${suggestion(unknown, KEYS)}`);
  const agents = content?.agents;
  if (!Array.isArray(agents)) throw new Error('must be an object with a list "agents"');
  if (agents.length === 0) throw new Error('contains no agent; add at least one');
  if (agents.length > AGENTS_MAX) throw new Error(`contains ${agents.length} agents; the maximum is ${AGENTS_MAX}`);
  const faults = agents.flatMap((agent, index) => faultsOf(agent, index));
  const names = agents.map(agent => agent?.name);
  const twice = names.filter((name, index) => typeof name === 'string' && names.indexOf(name) < index);
  faults.push(...[...new Set(twice)].map(name => `contains the agent "${name}" twice; names must be unique`));
  if (faults.length > 0) throw new Error(faults.join('; it '));
  return agents;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`is not JSON (${(error as Error).message})`);
  }
}

/** The faults of an entry, as clauses that continue the sentence "the agents file …". */
function faultsOf(agent: unknown, index: number): string[] {
  const { name, adapter } = (agent ?? {}) as Partial<AgentEntry>;
  const isNamed = typeof name === 'string' && NAME.test(name);
  const label = isNamed ? `the agent "${name}"` : `agent ${index + 1}`;
  const faults: string[] = [];
  if (!isNamed) faults.push(`has no valid name for ${label}: use at most 32 lower-case letters, digits and "-"`);
  if (typeof adapter !== 'string' || adapter === '')
    faults.push(`has no "adapter" for ${label}: use a2a, langgraph, mcp, model, module or recording`);
  if (JSON.stringify(agent).length > ENTRY_CHARS_MAX)
    faults.push(`has an entry of more than ${ENTRY_CHARS_MAX} characters for ${label}`);
  return faults;
}
