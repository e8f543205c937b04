import { setTimeout as sleep } from 'node:timers/promises';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ScriptedModel } from '../../../support/agents/graphs/scripted-model.ts';
import { tokensOf } from '../../../support/agents/scripted-agent.ts';
import { requestOf } from './request.ts';
import { RUNS_FOLDER, RunFile } from './run-file.ts';

const runs = new RunFile(process.env[RUNS_FOLDER] ?? '.');
/** A graph does not know the attempts of its caller: each run counts as one. */
let attempts = 0;

/** A LangGraph graph with one model, which follows the script in the text of the newest message. */
export const graph = new StateGraph(MessagesAnnotation)
  .addNode('answer', async ({ messages }, config) => {
    const { messageId, scripts } = requestOf(String(messages.at(-1)!.content));
    const script = scripts.graph!;
    attempts += 1;
    const message = { messageId, role: 'ROLE_USER' as const, parts: [] };
    const run = runs.begin('graph', { message, attempt: process.pid * 1e6 + attempts }, script);
    try {
      if (script.silentMs !== undefined) await sleep(script.silentMs, undefined, { signal: config.signal });
      const model = new ScriptedModel(() => ({ tokens: tokensOf(run.id, script), pauseMs: script.everyMs }));
      return { messages: [await model.invoke(messages, config)] };
    } finally {
      runs.end(run);
    }
  })
  .addEdge(START, 'answer')
  .addEdge('answer', END)
  .compile();
