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
import { PlayedModel, says } from './played-model.ts';

/** Graphs as people write them. Only the models are played. */

export const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  a2a_inbox: Annotation<Record<string, unknown> | undefined>(),
  a2a_outbox: Annotation<Record<string, unknown> | undefined>(),
});
type Node = (state: typeof State.State, config: LangGraphRunnableConfig) => Promise<Partial<typeof State.State>>;

const answers =
  (model: PlayedModel): Node =>
  async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] });

/** One node after the other. */
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
    new AIMessage(JSON.stringify({ said: messages.map(message => [message.getType(), message.id, message.content]), a2a_inbox })),
  ],
})).compile();

export const chat = chain(answers(says('Hel', 'lo', ' ', '\n', 'world'))).compile();

const look = tool(async ({ key }: { key: string }) => `value of ${key}`, {
  name: 'look_up',
  description: 'Looks up',
  schema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
});

/** Says what it will do, calls one tool twice at once, then answers. */
export const react = createReactAgent({
  llm: new PlayedModel(messages => {
    const found = messages.filter(message => message instanceof ToolMessage);
    if (found.length > 0) return { tokens: ['Found ', found.map(message => message.content).join(' and ')] };
    const calls = ['a', 'b'].map(key => ({ id: `call-${key}`, name: 'look_up', args: { key } }));
    return { tokens: ['I look ', 'it up. '], calls };
  }),
  tools: [look],
});

/** Two models speak at once; a third one sums up. */
export const parallel = new StateGraph(State)
  .addNode('left', answers(new PlayedModel(() => ({ tokens: ['al', 'p', 'ha'], pauseMs: 3 }))))
  .addNode('right', answers(new PlayedModel(() => ({ tokens: ['be', 't', 'a'], pauseMs: 3 }))))
  .addNode('sum', answers(says('both')))
  .addEdge(START, 'left')
  .addEdge(START, 'right')
  .addEdge(['left', 'right'], 'sum')
  .addEdge('sum', END)
  .compile();

/** One node, many times at once, each with its own model call. */
export const fanOut = new StateGraph(State)
  .addNode('one', async (state: { word: string }, config) => {
    const model = new PlayedModel(() => ({ tokens: [...state.word], pauseMs: 1 }));
    return { messages: [await model.invoke([new HumanMessage('x')], config)] };
  })
  .addConditionalEdges(START, () => ['ape', 'bee', 'cat'].map(word => new Send('one', { word })))
  .addEdge('one', END)
  .compile();

/** A graph in a graph in a graph. */
export const nested = chain(chain(chain(answers(says('in', 'ner'))).compile() as never).compile() as never).compile();

/** A node that copies what its model said into a message of its own. */
export const copies = chain(async ({ messages }, config) => {
  const said = await says('co', 'py').invoke(messages, config);
  return { messages: [new AIMessage(String(said.content))] };
}).compile();

/** A node that says everything it has, tokens of a model, an AI message and an outbox, in that order. */
export const outbox = chain(answers(says('dra', 'ft')), async () => ({
  messages: [new AIMessage({ content: 'the last message', id: 'ai-last' })],
  a2a_outbox: {
    message: {
      messageId: 'out-1',
      role: 'agent',
      parts: [{ kind: 'text', text: 'the outbox' }],
      taskId: 'foreign',
      contextId: 'foreign',
    },
  },
})).compile({ checkpointer: new MemorySaver() });

export const outboxTask = chain(async () => ({
  a2a_outbox: {
    task: {
      id: 'foreign',
      contextId: 'foreign',
      history: [{ messageId: 'h-1', role: 'ROLE_AGENT', parts: [{ text: 'noted' }] }],
      artifacts: [{ artifactId: 'foreign-a', name: 'report', parts: [{ data: { rows: 2 } }] }],
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

/** Its answer is nowhere but in what its model streamed. */
export const deltasOnly = new StateGraph(Annotation.Root({ a2a_inbox: Annotation<unknown>(), note: Annotation<string>() }))
  .addNode('n', async (_state, config) => {
    await says('only ', 'deltas').invoke([new HumanMessage('x')], config);
    return { note: 'said' };
  })
  .addEdge(START, 'n')
  .addEdge('n', END)
  .compile();

/** A2A events of its own beside the tokens of a model, in both notations, with foreign ids; and something that is no A2A. */
export const custom = chain(async ({ messages }, config) => {
  const foreign = { taskId: 'foreign', contextId: 'foreign' };
  write(config, {
    statusUpdate: {
      ...foreign,
      status: { state: 'TASK_STATE_WORKING', message: { messageId: 'p', role: 'ROLE_AGENT', parts: [{ text: 'half way' }] } },
    },
  });
  const artifact = { artifactId: 'foreign-a', name: 'report' };
  write(config, { artifactUpdate: { ...foreign, artifact: { ...artifact, parts: [{ text: 'one ' }] }, append: false } });
  const said = await says('tok', 'ens').invoke(messages, config);
  write(config, {
    kind: 'artifact-update',
    ...foreign,
    artifact: { ...artifact, parts: [{ kind: 'text', text: 'two' }] },
    append: true,
    lastChunk: true,
  });
  write(config, { percent: 50 });
  return { messages: [said] };
}).compile();

/** Ends the task itself, and then says more. */
export const customEnd = chain(async (_state, config) => {
  const status = {
    state: 'rejected',
    message: { kind: 'message', messageId: 'no', role: 'agent', parts: [{ kind: 'text', text: 'not that' }] },
  };
  write(config, { kind: 'status-update', taskId: 'foreign', contextId: 'foreign', status, final: true });
  return { messages: [new AIMessage('too late')] };
}).compile();

/** Writes these payloads in `custom`. */
export const writes = (...payloads: unknown[]) =>
  chain(async (_state, config) => {
    for (const payload of payloads) write(config, payload);
    return {};
  }).compile();

export const fails = chain(answers(says('before ')), async () => {
  throw new TypeError('a secret of the user');
}).compile();

export const endless = chain(answers(says('begun')), async () => {
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
    async ({ messages }, config) => ({ messages: [await says('Hm. ').invoke(messages, config)] }),
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
/** Compiled without a checkpointer: the entry names one. */
export const asksBare = asking().compile();

/** Keeps its thread, with a reducer that takes messages as they are: says how many of the user it has seen. */
export const counts = new StateGraph(
  Annotation.Root({ messages: Annotation<BaseMessage[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) }),
)
  .addNode('n', async ({ messages }) => ({
    messages: [new AIMessage(`${messages.filter(message => message instanceof HumanMessage).length} ${lastText(messages)}`)],
  }))
  .addEdge(START, 'n')
  .addEdge('n', END)
  .compile({ checkpointer: new MemorySaver() });

/** One agent for all of them: the text of the message is the name of the graph that answers. */
const ROUTES = { chat, react, parallel, outbox, outboxTask, bothOutbox, deltasOnly, custom, customEnd, fails, endless, nested };
export const routed = Object.entries(ROUTES)
  .reduce((graph, [name, route]) => graph.addNode(name, route as never) as never, new StateGraph(State))
  .addConditionalEdges(START, ({ messages }) => lastText(messages) as never)
  .compile({ checkpointer: new MemorySaver() });

/** A state that has neither messages nor an inbox. */
export const deaf = new StateGraph(Annotation.Root({ question: Annotation<string>() }))
  .addNode('n', async () => ({ question: 'x' }))
  .addEdge(START, 'n')
  .addEdge('n', END)
  .compile();
