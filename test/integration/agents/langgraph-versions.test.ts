import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLangGraphAgent } from '@hopline/agent-langgraph';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import * as newest from '@langchain/langgraph';
import { createReactAgent as createNewest } from '@langchain/langgraph/prebuilt';
import * as older from 'langgraph-1.4';
import { createReactAgent as createOlder } from 'langgraph-1.4/prebuilt';
import { ScriptedModel, textModel } from '../../support/agents/graphs/scripted-model.ts';
import { eventsOf, lastOf, textOf } from '../../support/agents/turn.ts';

type LangGraph = { graphs: typeof newest; createReactAgent: typeof createNewest };

/** The classes of two versions have different types and the same members. */
const VERSIONS: Record<string, LangGraph> = {
  newest: { graphs: newest, createReactAgent: createNewest },
  1.4: { graphs: older, createReactAgent: createOlder } as unknown as LangGraph,
};

const lookUp = tool(async ({ key }: { key: string }) => `value of ${key}`, {
  name: 'look_up',
  description: 'Looks up',
  schema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
});

function graphsOf({ graphs, createReactAgent }: LangGraph) {
  const { Annotation, END, interrupt, MemorySaver, MessagesAnnotation, START, StateGraph } = graphs;
  const State = Annotation.Root({ ...MessagesAnnotation.spec, a2a_inbox: Annotation<unknown>() });
  type Node = (state: typeof State.State) => Promise<Partial<typeof State.State>>;
  const single = (node: Node, checkpointer?: InstanceType<typeof MemorySaver>) =>
    new StateGraph(State)
      .addNode('n', node)
      .addEdge(START, 'n')
      .addEdge('n', END)
      .compile(checkpointer && { checkpointer });
  const react = createReactAgent({
    llm: new ScriptedModel(messages => {
      if (messages.some(message => message instanceof ToolMessage)) return { tokens: ['Found ', 'it'] };
      return { tokens: ['I look. '], calls: [{ id: 'call-a', name: 'look_up', args: { key: 'a' } }] };
    }),
    tools: [lookUp],
  });
  return {
    chat: single(async ({ messages }) => ({ messages: [await textModel('Hel', 'lo').invoke(messages)] })),
    react,
    fails: single(async () => {
      throw new TypeError('a secret of the user');
    }),
    asks: single(async () => {
      const colour = interrupt('Which colour?');
      return { messages: [new AIMessage(`painted ${colour} ${interrupt('Which size?')}`)] };
    }, new MemorySaver()),
  };
}

for (const [name, version] of Object.entries(VERSIONS)) {
  const graphs = graphsOf(version);
  const agentOf = (graph: unknown, more: object = {}) => createLangGraphAgent({ graph, HumanMessage, ...more });

  test(`LangGraph.js ${name}: text, tools and an exception`, async () => {
    assert.equal(textOf(await eventsOf(await agentOf(graphs.chat), 'hi')), 'Hello');
    const events = await eventsOf(await agentOf(graphs.react), 'hi');
    const tools = events.flatMap(event => (event.type === 'tool' ? [`${event.phase} ${event.tool} ${event.callId}`] : []));
    assert.deepEqual(tools, ['start look_up call-a', 'end look_up call-a']);
    assert.deepEqual(lastOf(events, 'done').message?.parts, [{ text: 'Found it' }]);
    assert.equal(lastOf(await eventsOf(await agentOf(graphs.fails), 'hi'), 'failed').reason, 'the graph failed: TypeError');
  });

  for (const [source, classes] of [
    ["the graph's own Command", { Command: version.graphs.Command }],
    ["the adapter's command", {}],
  ] as const) {
    test(`LangGraph.js ${name}: answers to interrupt() with ${source}`, async () => {
      const agent = await agentOf(graphs.asks, classes);
      const contextId = source;
      const first = lastOf(await eventsOf(agent, 'paint', { contextId }), 'interrupted');
      const answer = (text: string, resume: unknown) => eventsOf(agent, text, { contextId, resume });
      const second = lastOf(await answer('blue', first.resume), 'interrupted');
      assert.deepEqual(
        [first, second].map(({ message }) => message.parts[0]?.text),
        ['Which colour?', 'Which size?'],
      );
      assert.deepEqual(lastOf(await answer('large', second.resume), 'done').message?.parts, [{ text: 'painted blue large' }]);
    });
  }
}
