import { isAbsolute, join } from 'node:path';
import type { Agent } from '@hopline/agent';
import type { Skipped } from '@hopline/agent-a2a';
import type { LangGraphOptions } from '@hopline/agent-langgraph';
import type { McpOptions } from '@hopline/agent-mcp';
import type { AgentEntry, LangGraphEntry, McpEntry } from './agent-entry.ts';
import { importAs, loadExport, loadModuleAgent } from './module-agent.ts';

export type CreateAgentOptions = {
  /** Relative paths of the entry, and an MCP server's working directory, begin here. */
  folder: string;
  onSkipped: (what: Skipped | 'custom payload') => void;
};

/**
 * Makes the agent an entry describes, and loads no other adapter: the MCP SDK alone is a third of a second of CPU and 50 MB. Rejects when it can be known now that it cannot
 * work (a recording that is not there).
 */
export async function createAgent(entry: AgentEntry, { folder, onSkipped }: CreateAgentOptions): Promise<Agent> {
  const { name: _name, skills: _skills, retries: _retries, ...options } = entry;
  switch (options.adapter) {
    case 'a2a': {
      const { adapter: _adapter, ...rest } = options;
      const { createA2AAgent } = await import('@hopline/agent-a2a');
      return createA2AAgent({ ...rest, onSkipped });
    }
    case 'langgraph': {
      const { createLangGraphAgent } = await import('@hopline/agent-langgraph');
      return await createLangGraphAgent({ ...(await langGraphOptions(options, folder)), onSkipped });
    }
    case 'mcp': {
      const { createMcpAgent } = await import('@hopline/agent-mcp');
      return createMcpAgent(mcpOptions(options, folder));
    }
    case 'module': {
      const { adapter: _adapter, description, ...rest } = options;
      const agent = await loadModuleAgent({ ...rest, folder });
      return description === undefined ? agent : { ...agent, description };
    }
    case 'recording': {
      const { adapter: _adapter, path, ...rest } = options;
      const { createRecordingAgent } = await import('@hopline/agent-recording');
      return await createRecordingAgent({ ...rest, path: isAbsolute(path) ? path : join(folder, path) });
    }
  }
}

async function langGraphOptions(
  entry: Omit<LangGraphEntry, 'name' | 'skills' | 'retries'>,
  folder: string,
): Promise<LangGraphOptions> {
  const {
    module: path = '',
    export: name = 'default',
    checkpointer,
    url,
    assistant = '',
    headers,
    description,
    silenceMsMax,
    totalMsMax,
  } = entry;
  const limits = { ...(silenceMsMax !== undefined && { silenceMsMax }), ...(totalMsMax !== undefined && { totalMsMax }) };
  const told = { ...(description !== undefined && { description }), limits };
  if (url !== undefined) return { ...told, url, assistant, ...(headers && { headers }) };
  const graph = await loadExport({ path, name, folder });
  const saver = checkpointer === undefined ? undefined : await loadExport({ path, name: checkpointer, folder });
  // The graph's own class, not another copy of it: a state may keep messages with a reducer that does not convert them.
  const { HumanMessage } = (await importAs('@langchain/core/messages', { path, folder })) ?? {};
  const own = { ...(saver !== undefined && { checkpointer: saver }), ...(HumanMessage !== undefined && { HumanMessage }) };
  return { ...told, graph, ...own } as LangGraphOptions;
}

function mcpOptions(entry: Omit<McpEntry, 'name' | 'skills' | 'retries'>, folder: string): McpOptions {
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
