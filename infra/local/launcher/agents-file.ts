import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isObject } from '@hopline/a2a/json-value';
import { AGENT_NAME_RULE, isAgentName } from '@hopline/events';
import { suggestion } from '@hopline/lifecycle';
import { LaunchError } from './launch-error.ts';

const AGENTS_MAX = 64;
/** `$schema` names docs/reference/agents.schema.json for editors. */
const KEYS = ['$schema', 'agents'];
/** A sub-agent receives its entry in one environment variable, which Linux limits to 128 KiB. */
const ENTRY_CHARS_MAX = 64 * 1024;
/** The adapters of a sub-agent, for the error of an entry without one. A test compares them with the sub-agent's own. */
export const ADAPTERS = ['a2a', 'ag-ui', 'langgraph', 'mcp', 'model', 'module', 'recording'];

/** One entry of the file. The sub-agent that runs it checks everything except name and adapter. */
export type UncheckedEntry = { name: string; adapter: string; [field: string]: unknown };
export type AgentsFile = { agents: UncheckedEntry[]; folder: string; path: string };

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
export function parseAgents(text: string): UncheckedEntry[] {
  const content = parseJson(text);
  const { agents, ...others } = isObject(content) ? content : {};
  const unknown = Object.keys(others).find(key => !KEYS.includes(key));
  if (unknown !== undefined) throw new Error(`contains the unknown member "${unknown}"${suggestion(unknown, KEYS)}`);
  if (!isList(agents)) throw new Error('must be an object with a list "agents"');
  if (agents.length === 0) throw new Error('contains no agent; add at least one');
  if (agents.length > AGENTS_MAX) throw new Error(`contains ${agents.length} agents; the maximum is ${AGENTS_MAX}`);
  const faults = agents.flatMap((agent, index) => faultsOf(agent, index));
  const names = agents.flatMap(agent => (isObject(agent) && typeof agent.name === 'string' ? [agent.name] : []));
  const twice = names.filter((name, index) => names.indexOf(name) < index);
  faults.push(...[...new Set(twice)].map(name => `contains the agent "${name}" twice; names must be unique`));
  if (faults.length > 0) throw new Error(faults.join('; it '));
  return agents.filter(isEntry);
}

function isList(value: unknown): value is unknown[] {
  return Array.isArray(value);
}

function isEntry(value: unknown): value is UncheckedEntry {
  return isObject(value) && typeof value.name === 'string' && typeof value.adapter === 'string';
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
  const { name, adapter } = isObject(agent) ? agent : {};
  const isNamed = typeof name === 'string' && isAgentName(name);
  const label = isNamed ? `the agent "${name}"` : `agent ${index + 1}`;
  const faults: string[] = [];
  if (!isNamed) faults.push(`has no valid name for ${label}: use ${AGENT_NAME_RULE}`);
  if (typeof adapter !== 'string' || adapter === '')
    faults.push(`has no "adapter" for ${label}: use one of ${ADAPTERS.join(', ')}`);
  if (JSON.stringify(agent).length > ENTRY_CHARS_MAX)
    faults.push(`has an entry of more than ${ENTRY_CHARS_MAX} characters for ${label}`);
  return faults;
}
