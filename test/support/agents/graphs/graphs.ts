import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { tool } from '@langchain/core/tools';
import {
  Annotation,
  END,
  interrupt,
  type LangGraphRunnableConfig,
  MemorySaver,
  MessagesAnnotation,
  Send,
  START,
  StateGraph,
} from '@langchain/langgraph';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { ScriptedModel, textModel } from './scripted-model.ts';

/** Graphs as users of LangGraph write them; only the models are scripted. */

export const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  a2a_inbox: Annotation<Record<string, unknown> | undefined>(),
  a2a_outbox: Annotation<Record<string, unknown> | undefined>(),
});
type Node = (state: typeof State.State, config: LangGraphRunnableConfig) => Promise<Partial<typeof State.State>>;

const answers =
  (model: ScriptedModel): Node =>
  async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] });

/** Nodes in sequence. */
function chain(...nodes: Node[]) {
  const graph = new StateGraph(State);
  const names = nodes.map((node, index) => {
    graph.addNode(`n${index + 1}`, node);
    return `n${index + 1}`;
  });
  const edges = graph as unknown as { addEdge(from: string, to: string): void };
  for (const [index, name] of names.entries()) edges.addEdge(index === 0 ? START : names[index - 1]!, name);
  edges.addEdge(names.at(-1)!, END);
  return graph;
}

const write = (config: LangGraphRunnableConfig, payload: unknown) => config.writer?.(payload);

export const echo = chain(async ({ messages, a2a_inbox }) => ({
  messages: [
    new AIMessage(
      JSON.stringify({ received: messages.map(message => [message.getType(), message.id, message.content]), a2a_inbox }),
    ),
  ],
})).compile();

export const chat = chain(answers(textModel('Hel', 'lo', ' ', '\n', 'world'))).compile();

const look = tool(async ({ key }: { key: string }) => `value of ${key}`, {
  name: 'look_up',
  description: 'Looks up',
  schema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
});

/** Streams a preamble, calls one tool twice in parallel, then answers. */
export const react = createReactAgent({
  llm: new ScriptedModel(messages => {
    const found = messages.filter(message => message instanceof ToolMessage);
    if (found.length > 0) return { tokens: ['Found ', found.map(message => message.content).join(' and ')] };
    const calls = ['a', 'b'].map(key => ({ id: `call-${key}`, name: 'look_up', args: { key } }));
    const usage = { input_tokens: 5, output_tokens: 2, total_tokens: 7, input_token_details: { cache_read: 3 } };
    return { tokens: ['I look ', 'it up. '], calls, usage };
  }),
  tools: [look],
});

/** Two models stream in parallel; a third one sums up. */
export const parallel = new StateGraph(State)
  .addNode('left', answers(new ScriptedModel(() => ({ tokens: ['al', 'p', 'ha'], pauseMs: 3 }))))
  .addNode('right', answers(new ScriptedModel(() => ({ tokens: ['be', 't', 'a'], pauseMs: 3 }))))
  .addNode('sum', answers(textModel('both')))
  .addEdge(START, 'left')
  .addEdge(START, 'right')
  .addEdge(['left', 'right'], 'sum')
  .addEdge('sum', END)
  .compile();

/** Parallel runs of one node, each with its own model call. */
export const fanOut = new StateGraph(State)
  .addNode('one', async (state: { word: string }, config) => {
    const model = new ScriptedModel(() => ({ tokens: [...state.word], pauseMs: 1 }));
    return { messages: [await model.invoke([new HumanMessage('x')], config)] };
  })
  .addConditionalEdges(START, () => ['ape', 'bee', 'cat'].map(word => new Send('one', { word })))
  .addEdge('one', END)
  .compile();

/** A graph nested two levels deep. */
export const nested = chain(chain(chain(answers(textModel('in', 'ner'))).compile() as never).compile() as never).compile();

/** A node that copies its model's text into a message of its own. */
export const copies = chain(async ({ messages }, config) => {
  const reply = await textModel('co', 'py').invoke(messages, config);
  return { messages: [new AIMessage(String(reply.content))] };
}).compile();

/** Streams tokens of a model, then writes an AI message and an outbox. */
export const outbox = chain(answers(textModel('dra', 'ft')), async () => ({
  messages: [new AIMessage({ content: 'the last message', id: 'ai-last' })],
  a2a_outbox: {
    message: {
      messageId: 'out-1',
      role: 'agent',
      parts: [{ kind: 'text', text: 'the outbox' }],
      taskId: 'remote',
      contextId: 'remote',
    },
  },
})).compile({ checkpointer: new MemorySaver() });

export const outboxTask = chain(async () => ({
  a2a_outbox: {
    task: {
      id: 'remote',
      contextId: 'remote',
      history: [{ messageId: 'h-1', role: 'ROLE_AGENT', parts: [{ text: 'noted' }] }],
      artifacts: [{ artifactId: 'remote-a', name: 'report', parts: [{ data: { rows: 2 } }] }],
      metadata: { cost: 3, 'aion:network': 'spoofed', 'hopline.legacy': true },
      status: {
        state: 'TASK_STATE_COMPLETED',
        message: { messageId: 'out-2', role: 'ROLE_AGENT', parts: [{ text: 'see the report' }] },
      },
    },
  },
})).compile();

export const badOutbox = (outboxOf: unknown) =>
  chain(async () => ({ a2a_outbox: outboxOf as Record<string, unknown> })).compile();
export const bothOutbox = badOutbox({ message: { parts: [] }, task: {} });

/** Its answer exists only in the deltas of its model. */
export const deltasOnly = new StateGraph(Annotation.Root({ a2a_inbox: Annotation<unknown>(), note: Annotation<string>() }))
  .addNode('n', async (_state, config) => {
    await textModel('only ', 'deltas').invoke([new HumanMessage('x')], config);
    return { note: 'done' };
  })
  .addEdge(START, 'n')
  .addEdge('n', END)
  .compile();

/** Writes A2A events in both notations, with ids of its own, along with the tokens of a model; and one payload that is not A2A. */
export const custom = chain(async ({ messages }, config) => {
  const remote = { taskId: 'remote', contextId: 'remote' };
  write(config, {
    statusUpdate: {
      ...remote,
      status: { state: 'TASK_STATE_WORKING', message: { messageId: 'p', role: 'ROLE_AGENT', parts: [{ text: 'half way' }] } },
    },
  });
  const artifact = { artifactId: 'remote-a', name: 'report' };
  write(config, { artifactUpdate: { ...remote, artifact: { ...artifact, parts: [{ text: 'one ' }] }, append: false } });
  const reply = await textModel('tok', 'ens').invoke(messages, config);
  write(config, {
    kind: 'artifact-update',
    ...remote,
    artifact: { ...artifact, parts: [{ kind: 'text', text: 'two' }] },
    append: true,
    lastChunk: true,
  });
  write(config, { percent: 50 });
  return { messages: [reply] };
}).compile();

/** Ends the task itself, then returns another message. */
export const customEnd = chain(async (_state, config) => {
  const status = {
    state: 'rejected',
    message: { kind: 'message', messageId: 'no', role: 'agent', parts: [{ kind: 'text', text: 'not that' }] },
  };
  write(config, { kind: 'status-update', taskId: 'remote', contextId: 'remote', status, final: true });
  return { messages: [new AIMessage('too late')] };
}).compile();

/** Writes these payloads in stream mode `custom`. */
export const writes = (...payloads: unknown[]) =>
  chain(async (_state, config) => {
    for (const payload of payloads) write(config, payload);
    return {};
  }).compile();

export const fails = chain(answers(textModel('before ')), async () => {
  throw new TypeError('a secret of the user');
}).compile();

export const endless = chain(answers(textModel('begun')), async () => {
  await new Promise(() => {});
  return {};
}).compile();

export const loops = new StateGraph(State)
  .addNode('again', async () => ({}))
  .addEdge(START, 'again')
  .addConditionalEdges('again', () => 'again')
  .compile();

const lastText = (messages: BaseMessage[]) => String(messages.at(-1)?.content);

const asking = () =>
  chain(
    async ({ messages }, config) => ({ messages: [await textModel('Hm. ').invoke(messages, config)] }),
    async ({ a2a_inbox }) => {
      const colour = interrupt({ question: 'Which colour?' });
      const size = interrupt('Which size?');
      return {
        messages: [
          new AIMessage(
            `painted ${colour} ${size} for ${JSON.stringify((a2a_inbox?.message as { messageId?: string })?.messageId)}`,
          ),
        ],
      };
    },
  );
export const asks = asking().compile({ checkpointer: new MemorySaver() });
/** Compiled without a checkpointer: the agent's entry names one. */
export const asksBare = asking().compile();

/** Keeps its thread, with a reducer that appends messages unchanged; answers with its number of user messages. */
export const counts = new StateGraph(
  Annotation.Root({ messages: Annotation<BaseMessage[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) }),
)
  .addNode('n', async ({ messages }) => ({
    messages: [new AIMessage(`${messages.filter(message => message instanceof HumanMessage).length} ${lastText(messages)}`)],
  }))
  .addEdge(START, 'n')
  .addEdge('n', END)
  .compile({ checkpointer: new MemorySaver() });

/** One agent for all graphs: the text of the message names the graph that answers. */
const ROUTES = { chat, react, parallel, outbox, outboxTask, bothOutbox, deltasOnly, custom, customEnd, fails, endless, nested };
export const routed = Object.entries(ROUTES)
  .reduce((graph, [name, route]) => graph.addNode(name, route as never) as never, new StateGraph(State))
  .addConditionalEdges(START, ({ messages }) => lastText(messages) as never)
  .compile({ checkpointer: new MemorySaver() });

/** A state with neither messages nor an inbox. */
export const withoutMessages = new StateGraph(Annotation.Root({ question: Annotation<string>() }))
  .addNode('n', async () => ({ question: 'x' }))
  .addEdge(START, 'n')
  .addEdge('n', END)
  .compile();
