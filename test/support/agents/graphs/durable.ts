import { AIMessage } from '@langchain/core/messages';
import { END, interrupt, START, StateGraph } from '@langchain/langgraph';
import { FileSaver } from './file-saver.ts';
import { State } from './graphs.ts';
import { ScriptedModel } from './scripted-model.ts';

/** Threads are stored in THREADS_FILE, because tests kill the process. */
export const saver = new FileSaver(process.env.THREADS_FILE ?? 'threads.json');

/** Streams numbers for some seconds, then interrupts; its last message contains the answer. */
export const slow = new StateGraph(State)
  .addNode('first', async () => ({ messages: [new AIMessage('first. ')] }))
  .addNode('counts', async ({ messages }, config) => {
    const tokens = Array.from({ length: 150 }, (_, index) => `${index} `);
    return { messages: [await new ScriptedModel(() => ({ tokens, pauseMs: 10 })).invoke(messages, config)] };
  })
  .addNode('ask', async () => ({ messages: [new AIMessage(`painted ${interrupt('Which colour?')}`)] }))
  .addEdge(START, 'first')
  .addEdge('first', 'counts')
  .addEdge('counts', 'ask')
  .addEdge('ask', END)
  .compile();
