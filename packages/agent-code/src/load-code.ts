import type { Agent } from '@hopline/agent';
import type { LangGraphOptions } from '@hopline/agent-langgraph';
import { importAs, loadExport, loadModuleAgent } from './module-agent.ts';
import type { Code } from './protocol.ts';

/** The agent of a module or a graph. Rejects with one sentence when there is none. */
export async function loadCode(code: Code, folder: string, onSkipped: () => void): Promise<Agent> {
  if (code.adapter === 'module') {
    const { adapter: _adapter, ...options } = code;
    return await loadModuleAgent({ ...options, folder });
  }
  const { createLangGraphAgent } = await import('@hopline/agent-langgraph');
  return await createLangGraphAgent({ ...(await graphOptions(code, folder)), onSkipped });
}

type GraphCode = Extract<Code, { adapter: 'langgraph' }>;

async function graphOptions(
  { module: path, export: name = 'default', checkpointer, description, silenceMsMax, totalMsMax }: GraphCode,
  folder: string,
): Promise<LangGraphOptions> {
  const graph = await loadExport({ path, name, folder });
  const saver = checkpointer === undefined ? undefined : await loadExport({ path, name: checkpointer, folder });
  // Uses the classes of the graph's own copy of LangChain, because a reducer may not convert messages of another class.
  const { HumanMessage } = (await importAs('@langchain/core/messages', { path, folder })) ?? {};
  const { Command } = (await importAs('@langchain/langgraph', { path, folder })) ?? {};
  return {
    ...(description !== undefined && { description }),
    limits: { ...(silenceMsMax !== undefined && { silenceMsMax }), ...(totalMsMax !== undefined && { totalMsMax }) },
    graph,
    ...(saver !== undefined && { checkpointer: saver }),
    ...(HumanMessage !== undefined && { HumanMessage }),
    ...(Command !== undefined && { Command }),
  } as LangGraphOptions;
}
