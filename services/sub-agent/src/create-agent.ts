import { isAbsolute, join } from 'node:path';
import type { Agent } from '@hopline/agent';
import { createA2AAgent, type Skipped } from '@hopline/agent-a2a';
import { createMcpAgent, type McpOptions } from '@hopline/agent-mcp';
import { createRecordingAgent } from '@hopline/agent-recording';
import type { AgentEntry, McpEntry } from './agent-entry.ts';

export type CreateAgentOptions = {
  /** Relative paths of the entry, and an MCP server's working directory, begin here. */
  folder: string;
  onSkipped: (what: Skipped) => void;
};

/** Makes the agent an entry describes. Rejects when it can be known now that it cannot work (a recording that is not there). */
export async function createAgent(entry: AgentEntry, { folder, onSkipped }: CreateAgentOptions): Promise<Agent> {
  const { name: _name, skills: _skills, ...options } = entry;
  switch (options.adapter) {
    case 'a2a': {
      const { adapter: _adapter, ...rest } = options;
      return createA2AAgent({ ...rest, onSkipped });
    }
    case 'mcp':
      return createMcpAgent(mcpOptions(options, folder));
    case 'recording': {
      const { adapter: _adapter, path, ...rest } = options;
      return await createRecordingAgent({ ...rest, path: isAbsolute(path) ? path : join(folder, path) });
    }
  }
}

function mcpOptions(entry: Omit<McpEntry, 'name' | 'skills'>, folder: string): McpOptions {
  const { command, args, env, url, headers, description, connectMsMax, silenceMsMax, totalMsMax } = entry;
  const limits = {
    ...(connectMsMax !== undefined && { connectMsMax }),
    ...(silenceMsMax !== undefined && { silenceMsMax }),
    ...(totalMsMax !== undefined && { totalMsMax }),
  };
  const told = { ...(description !== undefined && { description }), limits };
  if (url !== undefined) return { ...told, url, ...(headers && { headers }) };
  return { ...told, command: program(command ?? '', folder), ...(args && { args }), ...(env && { env }), cwd: folder };
}

/** `node` is the Node that runs Hopline: the one on PATH may be older, or not there. */
function program(command: string, folder: string): string {
  if (command === 'node') return process.execPath;
  return /^\.{1,2}[\\/]/.test(command) ? join(folder, command) : command;
}
