import { AIMessage } from '@langchain/core/messages';
import { FakeListChatModel } from '@langchain/core/utils/testing';
import { END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';

/** Stands for any chat model of LangChain, so that the example needs no key: put `new ChatOpenAI(...)` here. */
const model = new FakeListChatModel({
  responses: ['Roses are red,\nviolets are blue,\nlogs are append-only,\nand so are you.\n'],
  sleep: 10,
});

/** Threads live as long as this process; a checkpointer with a database keeps them longer. */
export const saver = new MemorySaver();

/** Writes a poem token by token, asks whether to publish it, and goes on with the answer. */
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
