import { isAbsolute, join } from 'node:path';
import type { Agent } from '@hopline/agent';
import type { Skipped, Webhooks } from '@hopline/agent-a2a';
import type { LangGraphOptions } from '@hopline/agent-langgraph';
import type { McpOptions, McpServer } from '@hopline/agent-mcp';
import type { ModelAgentOptions } from '@hopline/agent-model';
import { a2aOptions } from './a2a-options.ts';
import type { AgentEntry, LangGraphEntry, McpEntry, ModelEntry } from './agent-entry.ts';
import { importAs, loadExport, loadModuleAgent } from './module-agent.ts';

/** Address and key for `model` entries without their own. */
type ModelDefaults = { baseUrl: string; apiKey: string | undefined };

export type CreateAgentOptions = {
  /** Base of relative paths of the entry, and the working directory of MCP servers. */
  folder: string;
  onSkipped: (what: Skipped | 'custom payload') => void;
  model: ModelDefaults;
  /** Webhooks for an agent at `url`. */
  webhooks: (url: string) => Webhooks;
  /** Reads an environment variable named by an entry: credentials are not part of the agents file. */
  secret: (variable: string) => string | undefined;
};

/**
 * Creates the agent of an entry. Adapters are imported on demand: importing the MCP SDK takes a third of a second of CPU and 50 MB. Rejects
 * when the entry cannot work, e.g. when its recording is missing.
 */
export async function createAgent(entry: AgentEntry, context: CreateAgentOptions): Promise<Agent> {
  const { folder, onSkipped } = context;
  const { name: _name, skills: _skills, default: _default, retries: _retries, forwardText: _forwardText, ...options } = entry;
  switch (options.adapter) {
    case 'a2a': {
      const { createA2AAgent } = await import('@hopline/agent-a2a');
      return createA2AAgent({
        ...(await a2aOptions(options, { ...context, name: entry.name ?? '' })),
        webhooks: context.webhooks(options.url),
        onSkipped,
      });
    }
    case 'langgraph': {
      const { createLangGraphAgent } = await import('@hopline/agent-langgraph');
      requireVariables(options.env, context);
      return await createLangGraphAgent({ ...(await langGraphOptions(options, folder)), onSkipped });
    }
    case 'mcp': {
      const { createMcpAgent } = await import('@hopline/agent-mcp');
      return createMcpAgent(mcpOptions(options, folder));
    }
    case 'model': {
      const { createModelAgent } = await import('@hopline/agent-model');
      return createModelAgent(modelOptions(options, context));
    }
    case 'module': {
      const { adapter: _adapter, description, env, ...rest } = options;
      requireVariables(env, context);
      const agent = await loadModuleAgent({ ...rest, folder });
      return description === undefined ? agent : described(agent, description);
    }
    case 'recording': {
      const { adapter: _adapter, path, ...rest } = options;
      const { createRecordingAgent } = await import('@hopline/agent/recording');
      return await createRecordingAgent({ ...rest, path: isAbsolute(path) ? path : join(folder, path) });
    }
  }
}

/** Adds the description without copying the agent: it may be an instance of a class, whose methods a copy would lack. */
function described(agent: Agent, description: string): Agent {
  const runBatches = agent.runBatches?.bind(agent);
  return {
    ...(agent.name !== undefined && { name: agent.name }),
    ...(agent.reportsWork && { reportsWork: agent.reportsWork }),
    ...(agent.repeatsText && { repeatsText: agent.repeatsText }),
    description,
    skills: () => agent.skills(),
    run: turn => agent.run(turn),
    ...(runBatches && { runBatches }),
    close: () => agent.close(),
  };
}

/** Throws if a variable that the agent's code needs is not set. Otherwise its code would fail later, with its own message. */
function requireVariables(env: readonly string[] = [], { secret }: CreateAgentOptions): void {
  const missing = env.findIndex(variable => secret(variable) === undefined);
  if (missing >= 0) throw new Error(`the variable that env.${missing} names is not set`);
}

/** The fields that configure the agent itself. */
type AgentFields<E> = Omit<E, 'name' | 'skills' | 'default' | 'retries' | 'forwardText'>;

async function langGraphOptions(entry: AgentFields<LangGraphEntry>, folder: string): Promise<LangGraphOptions> {
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
  const options = { ...(description !== undefined && { description }), limits };
  if (url !== undefined) return { ...options, url, assistant, ...(headers && { headers }) };
  const graph = await loadExport({ path, name, folder });
  const saver = checkpointer === undefined ? undefined : await loadExport({ path, name: checkpointer, folder });
  // Uses the classes of the graph's own copy of LangChain, because a reducer may not convert messages of another class.
  const { HumanMessage } = (await importAs('@langchain/core/messages', { path, folder })) ?? {};
  const { Command } = (await importAs('@langchain/langgraph', { path, folder })) ?? {};
  const graphOptions = {
    ...(saver !== undefined && { checkpointer: saver }),
    ...(HumanMessage !== undefined && { HumanMessage }),
    ...(Command !== undefined && { Command }),
  };
  return { ...options, graph, ...graphOptions } as LangGraphOptions;
}

function mcpOptions(entry: AgentFields<McpEntry>, folder: string): McpOptions {
  const { description, connectMsMax, silenceMsMax, totalMsMax } = entry;
  const limits = {
    ...(connectMsMax !== undefined && { connectMsMax }),
    ...(silenceMsMax !== undefined && { silenceMsMax }),
    ...(totalMsMax !== undefined && { totalMsMax }),
  };
  return { ...mcpServer(entry, folder), ...(description !== undefined && { description }), limits };
}

function mcpServer({ command, args, env, url, headers }: ServerEntry, folder: string): McpServer {
  if (url !== undefined) return { url, ...(headers && { headers }) };
  return { command: program(command ?? '', folder), ...(args && { args }), ...(env && { env }), cwd: folder };
}

type ServerEntry = Pick<McpEntry, 'command' | 'args' | 'env' | 'url' | 'headers'>;

function modelOptions(entry: AgentFields<ModelEntry>, context: CreateAgentOptions): ModelAgentOptions {
  const {
    adapter: _adapter,
    apiKeyEnv,
    mcp = [],
    firstTokenMsMax,
    silenceMsMax,
    totalMsMax,
    toolResultCharsMax,
    ...rest
  } = entry;
  const apiKey = apiKeyEnv === undefined ? defaultKey(entry, context.model) : context.secret(apiKeyEnv);
  if (apiKeyEnv !== undefined && apiKey === undefined) throw new Error('the variable that apiKeyEnv names is not set');
  const limits = {
    ...(firstTokenMsMax !== undefined && { firstTokenMsMax }),
    ...(silenceMsMax !== undefined && { silenceMsMax }),
    ...(totalMsMax !== undefined && { totalMsMax }),
  };
  return {
    ...rest,
    baseUrl: entry.baseUrl ?? context.model.baseUrl,
    apiKey,
    limits,
    mcp: mcp.map(server => mcpServer(server, context.folder)),
    ...(toolResultCharsMax !== undefined && { toolResultUnitsMax: toolResultCharsMax }),
  };
}

/** The default key is only for the default address, because no other server may receive it. */
function defaultKey({ baseUrl }: Pick<ModelEntry, 'baseUrl'>, model: ModelDefaults): string | undefined {
  return baseUrl === undefined || baseUrl === model.baseUrl ? model.apiKey : undefined;
}

/** `node` is the Node that runs Hopline: the one on PATH may be older or missing. */
function program(command: string, folder: string): string {
  if (command === 'node') return process.execPath;
  return /^\.{1,2}[\\/]/.test(command) ? join(folder, command) : command;
}
