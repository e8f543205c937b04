import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';

/** Replace with any chat model of LangChain, e.g. `new ChatOpenAI(...)`. The fake one needs no key. */
const model = new FakeListChatModel({
  responses: ['Roses are red,\nviolets are blue,\nlogs are append-only,\nand so are you.\n'],
  sleep: 10,
});

/** Threads are lost when this process ends; use a checkpointer with a database to keep them. */
export const saver = new MemorySaver();

/** Streams a poem, asks whether to publish it, and continues with the answer. */
export const graph = new StateGraph(MessagesAnnotation)
  .addNode('write', async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] }))
  .addNode('ask', () => {
    const answer = String(interrupt('Shall I publish it? (yes or no)'));
    return { messages: [new AIMessage(/^\s*y/i.test(answer) ? 'Published.' : 'Kept in the drawer.')] };
  })
  .addEdge(START, 'write')
  .addEdge('write', 'ask')
  .addEdge('ask', END)
  .compile();
