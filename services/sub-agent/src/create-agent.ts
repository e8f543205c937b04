import { isAbsolute, join, resolve } from 'node:path';
import type { Agent } from '@hopline/agent';
import type { Skipped, Webhooks } from '@hopline/agent-a2a';
import type { AgUiAgentOptions } from '@hopline/agent-ag-ui';
import { type Code, createCodeAgent, programOf } from '@hopline/agent-code';
import type { LangGraphOptions } from '@hopline/agent-langgraph';
import type { McpOptions, McpServer } from '@hopline/agent-mcp';
import type { ModelAgentOptions } from '@hopline/agent-model';
import { readPrices } from '@hopline/chat-model/model-prices';
import { HEADER_VALUE } from '@hopline/outbound-http';
import { a2aOptions } from './a2a-options.ts';
import type { AgentEntry, AgUiEntry, LangGraphEntry, McpEntry, ModelEntry } from './agent-entry.ts';
import type { CodeProcesses } from './code-processes.ts';

/** Address and key for `model` entries that have none. */
type ModelDefaults = { baseUrl: string; apiKey: string | undefined; pricesFile?: string | undefined };

type CreateAgentOptions = {
  /** Base of relative paths of the entry, and the working directory of MCP servers. */
  folder: string;
  onSkipped: (what: Skipped | 'custom payload') => void;
  model: ModelDefaults;
  /** Webhooks for an agent at `url`. */
  webhooks: (url: string) => Webhooks;
  /** Reads an environment variable named by an entry: credentials are not part of the agents file. */
  secret: (variable: string) => string | undefined;
  /** Runs the code that an entry names, apart from this process. */
  code: CodeProcesses;
};

/**
 * Creates the agent of an entry. Adapters are imported on demand: importing the MCP SDK takes a third of a second of CPU and 50 MB. Rejects
 * if the entry cannot work, e.g. because its recording is missing.
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
    case 'ag-ui': {
      const { createAgUiAgent } = await import('@hopline/agent-ag-ui');
      return createAgUiAgent(agUiOptions(options));
    }
    case 'langgraph': {
      if (options.url === undefined) {
        const { env, loadMsMax } = options;
        return await codeAgent(graphCode(options), { name: entry.name, env, loadMsMax }, context);
      }
      const { createLangGraphAgent } = await import('@hopline/agent-langgraph');
      return await createLangGraphAgent({ ...serverOptions(options, options.url), onSkipped });
    }
    case 'mcp': {
      const { createMcpAgent } = await import('@hopline/agent-mcp');
      return createMcpAgent(mcpOptions(options, entry.name, context));
    }
    case 'model': {
      const { createModelAgent } = await import('@hopline/agent-model');
      return createModelAgent(modelOptions(options, entry.name, context));
    }
    case 'module': {
      const { description, env, loadMsMax, ...code } = options;
      return await codeAgent(code, { name: entry.name, description, env, loadMsMax }, context);
    }
    case 'recording': {
      const { adapter: _adapter, path, ...rest } = options;
      const { createRecordingAgent } = await import('@hopline/agent/recording');
      return await createRecordingAgent({ ...rest, path: isAbsolute(path) ? path : join(folder, path) });
    }
  }
}

type CodeEntry = {
  name: string | undefined;
  description?: string | undefined;
  env: readonly string[] | undefined;
  loadMsMax: number | undefined;
};

/** An agent whose code runs in a process of its own, without the login of this one (ADR 151). */
async function codeAgent(
  code: Code,
  { name, description, env = [], loadMsMax }: CodeEntry,
  context: CreateAgentOptions,
): Promise<Agent> {
  if (!context.code.isElsewhere) requireVariables(env, name, context);
  const { folder, onSkipped } = context;
  const { pricesFile } = context.model;
  const file = code.adapter === 'module' ? code.path : code.module;
  return await createCodeAgent({
    ...context.code.host({ name: name ?? file, file: resolve(folder, file), env }),
    code,
    folder,
    description,
    loadMsMax,
    priceOf: pricesFile === undefined ? undefined : readPrices(pricesFile),
    onSkipped: () => onSkipped('custom payload'),
  });
}

/** Throws if a variable that the agent's code needs is not set. Otherwise its code would fail later, with its own message. */
function requireVariables(env: readonly string[], name: string | undefined, { secret }: CreateAgentOptions): void {
  const missing = env.findIndex(variable => secret(variable) === undefined);
  if (missing >= 0) throw new Error(`${labelOf(name)}the variable that env.${missing} names is not set`);
}

/** The beginning of an error about one of several agents. The name of some agents is known only after their code has been loaded. */
function labelOf(name: string | undefined): string {
  return name === undefined ? '' : `agent "${name}": `;
}

/** The fields that configure the agent itself. */
type AgentFields<E> = Omit<E, 'name' | 'skills' | 'default' | 'retries' | 'forwardText'>;

function graphCode({ module = '', export: exported, checkpointer, ...rest }: AgentFields<LangGraphEntry>): Code {
  const { description, silenceMsMax, totalMsMax } = rest;
  return {
    adapter: 'langgraph',
    module,
    ...(exported !== undefined && { export: exported }),
    ...(checkpointer !== undefined && { checkpointer }),
    ...(description !== undefined && { description }),
    ...(silenceMsMax !== undefined && { silenceMsMax }),
    ...(totalMsMax !== undefined && { totalMsMax }),
  };
}

function serverOptions(entry: AgentFields<LangGraphEntry>, url: string): LangGraphOptions {
  const { assistant = '', headers, description, silenceMsMax, totalMsMax } = entry;
  const limits = { ...(silenceMsMax !== undefined && { silenceMsMax }), ...(totalMsMax !== undefined && { totalMsMax }) };
  return { ...(description !== undefined && { description }), limits, url, assistant, ...(headers && { headers }) };
}

function agUiOptions({
  url,
  headers,
  description,
  firstEventMsMax,
  silenceMsMax,
  totalMsMax,
}: AgentFields<AgUiEntry>): AgUiAgentOptions {
  const limits = {
    ...(firstEventMsMax !== undefined && { firstEventMsMax }),
    ...(silenceMsMax !== undefined && { silenceMsMax }),
    ...(totalMsMax !== undefined && { totalMsMax }),
  };
  return { url, limits, ...(headers && { headers }), ...(description !== undefined && { description }) };
}

function mcpOptions(entry: AgentFields<McpEntry>, name: string | undefined, context: CreateAgentOptions): McpOptions {
  const { description, tools, connectMsMax, silenceMsMax, totalMsMax } = entry;
  const limits = {
    ...(connectMsMax !== undefined && { connectMsMax }),
    ...(silenceMsMax !== undefined && { silenceMsMax }),
    ...(totalMsMax !== undefined && { totalMsMax }),
  };
  return {
    ...mcpServer(entry, name, context),
    ...(description !== undefined && { description }),
    ...(tools && { tools }),
    limits,
  };
}

function mcpServer({ command, args = [], env, url, headers }: ServerEntry, name = '', context: CreateAgentOptions): McpServer {
  if (url !== undefined) return { url, ...(headers && { headers }) };
  const { folder } = context;
  const started = programOf(command ?? '', folder);
  const server = { command: started, args, cwd: folder, ...(env && { env }) };
  const socket = context.code.serverSocket;
  if (socket !== undefined) return { ...server, socket };
  const user = context.code.userOf({
    name,
    paths: [folder, context.code.onPath(started), ...args.map(arg => resolve(folder, arg))],
  });
  return { ...server, ...(user && { user }) };
}

type ServerEntry = Pick<McpEntry, 'command' | 'args' | 'env' | 'url' | 'headers'>;

function modelOptions(entry: AgentFields<ModelEntry>, name: string | undefined, context: CreateAgentOptions): ModelAgentOptions {
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
  if (apiKeyEnv !== undefined && !apiKey) throw new Error(`${labelOf(name)}the variable that apiKeyEnv names is not set`);
  if (apiKeyEnv !== undefined && !HEADER_VALUE.test(apiKey ?? ''))
    throw new Error(`${labelOf(name)}the variable that apiKeyEnv names contains characters that a header cannot have`);
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
    pricesFile: context.model.pricesFile,
    mcp: mcp.map(server => mcpServer(server, name, context)),
    ...(toolResultCharsMax !== undefined && { toolResultUnitsMax: toolResultCharsMax }),
  };
}

/** The default key is used only for the default address, because no other server may receive it. */
function defaultKey({ baseUrl }: Pick<ModelEntry, 'baseUrl'>, model: ModelDefaults): string | undefined {
  return baseUrl === undefined || baseUrl === model.baseUrl ? model.apiKey : undefined;
}
