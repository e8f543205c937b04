import { randomUUID } from 'node:crypto';
import { cardOf, type Json, SHAPES } from '../../support/agents/remote-shapes.ts';
import { ANSWER } from '../tokens.ts';

/** Content of one frame for a client: more text of an artifact, the id of the task, or its end. */
type WireEvent = { taskId?: string; artifact?: string; text?: string; isReplaced?: boolean; endedAs?: string };

/** Both sides of one protocol by which agents stream: the request and the reader of a client, and the answer of a server. */
export type Wire = {
  /** Path of the request that streams, below the server's URL. */
  path: string;
  body(text: string): Json;
  /** Reads a frame. `data`: its data. */
  read(data: string): WireEvent;
  /** The text of a message, on the server. */
  textOf(body: Json): string;
  /** Answer to a request that does not stream; undefined means 404. */
  answer(path: string, url: string): unknown;
  run(): Run;
};

/** The frames of one answer, from its first to its last token. */
type Run = { begin: string; token(text: string, index: number, isLast: boolean): string; end(text: string): string };

const COMPLETED = 'TASK_STATE_COMPLETED';
const frame = (value: unknown, event?: string) =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`;
const rpc = (result: unknown) => frame({ jsonrpc: '2.0', id: 1, result });
const textOfParts = (parts: unknown): string => (parts as { text?: string }[]).map(part => part.text ?? '').join('');
const sentText = ({ params }: Json): string => textOfParts(((params as Json).message as Json).parts);

/** A2A 1.0: one artifact update per token, as `@a2a-js/sdk` sends them. */
const a2a10: Wire = {
  path: '/',
  body: text => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'SendStreamingMessage',
    params: { message: { role: 'ROLE_USER', messageId: randomUUID(), parts: [{ text }] } },
  }),
  read: data => {
    const { result, error } = JSON.parse(data) as { result?: Json; error?: { message: string } };
    if (result === undefined) throw new Error(`the server returned an error: ${error?.message}`);
    const { task, statusUpdate, artifactUpdate } = result as Record<string, Json | undefined>;
    if (artifactUpdate !== undefined) {
      const { artifact, append } = artifactUpdate as { artifact: { name?: string; parts: unknown }; append?: boolean };
      return { artifact: artifact.name ?? '', text: textOfParts(artifact.parts), isReplaced: append !== true };
    }
    if (task !== undefined) return { taskId: String(task.id) };
    const { state = '' } = (statusUpdate?.status ?? {}) as { state?: string };
    return /_(COMPLETED|FAILED|CANCELED|REJECTED)$/.test(state) ? { endedAs: state } : {};
  },
  textOf: sentText,
  answer: (path, url) => (path === '/.well-known/agent-card.json' ? cardOf('1.0', `${url}/`, {}).card : undefined),
  run: () => {
    const ids = { taskId: randomUUID(), contextId: randomUUID() };
    const shapes = SHAPES['1.0'];
    const update = (text: string, append: boolean, last: boolean) =>
      rpc(shapes.artifactUpdate(ids, shapes.artifact({ artifactId: ANSWER, name: ANSWER, text }), append, last));
    return {
      begin: rpc(shapes.taskResult(shapes.task(ids, 'working', { history: [], artifacts: [] }))),
      token: (text, index, isLast) => update(text, index > 0, isLast),
      end: () => rpc(shapes.statusUpdate(ids, 'completed', undefined, undefined)),
    };
  },
};

/** A2A 0.3: one working status with a message per token, as agents of CAIPE send them. */
const a2a03: Wire = {
  path: '/',
  body: text => ({
    jsonrpc: '2.0',
    id: 1,
    method: 'message/stream',
    params: { message: { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text }] } },
  }),
  read: data => {
    const { result, error } = JSON.parse(data) as { result?: Json; error?: { message: string } };
    if (result === undefined) throw new Error(`the server returned an error: ${error?.message}`);
    if (result.kind === 'task') return { taskId: String(result.id) };
    const { state, message } = (result.status ?? {}) as { state?: string; message?: Json };
    if (state === 'completed') return { endedAs: COMPLETED };
    return message === undefined ? {} : { artifact: ANSWER, text: textOfParts(message.parts) };
  },
  textOf: sentText,
  answer: (path, url) => (path === '/.well-known/agent-card.json' ? cardOf('0.3', `${url}/`, {}).card : undefined),
  run: () => {
    const ids = { taskId: randomUUID(), contextId: randomUUID() };
    const shapes = SHAPES['0.3'];
    return {
      begin: rpc(shapes.task(ids, 'submitted', { history: [], artifacts: [] })),
      token: (text, index) =>
        rpc(shapes.statusUpdate(ids, 'working', shapes.message(ids, { messageId: `${ids.taskId}-${index}`, text }), undefined)),
      end: () => rpc(shapes.statusUpdate(ids, 'completed', undefined, undefined)),
    };
  },
};

const ASSISTANT = 'eb6db400-e3c8-5d06-a834-015cb89efe69';

/** A LangGraph server: `messages` of one model, then the state. */
const langgraph: Wire = {
  path: '/threads/3084d207-6afc-89ac-828a-f49fb7f2c8a3/runs/stream',
  body: text => ({ assistant_id: ASSISTANT, input: { messages: [{ type: 'human', content: text, id: randomUUID() }] } }),
  read: data => {
    if (data.startsWith('{')) return { endedAs: COMPLETED };
    const [chunk] = JSON.parse(data) as [{ content: string }];
    return { artifact: ANSWER, text: chunk.content };
  },
  textOf: ({ input }) => ((input as Json).messages as { content: string }[])[0]!.content,
  answer: path => {
    if (path === '/assistants/search') return [{ assistant_id: ASSISTANT, name: 'chat' }];
    if (path.endsWith('/schemas')) return { state_schema: { properties: { messages: {} } } };
    return path === '/threads' ? {} : undefined;
  },
  run: () => {
    const id = `run--${randomUUID()}`;
    const metadata = { langgraph_node: 'model', langgraph_checkpoint_ns: `model:${randomUUID()}`, langgraph_step: 1 };
    const message = (type: string, content: string) => ({
      content,
      additional_kwargs: {},
      response_metadata: {},
      type,
      name: null,
      id,
      tool_calls: [],
    });
    return {
      begin: '',
      token: text => frame([message('AIMessageChunk', text), metadata], 'messages'),
      end: text => frame({ messages: [message('ai', text)] }, 'values'),
    };
  },
};

/** A model server that speaks OpenAI chat completions. */
const model: Wire = {
  path: '/v1/chat/completions',
  body: text => ({ model: 'stand-in', stream: true, messages: [{ role: 'user', content: text }] }),
  read: data => {
    if (data === '[DONE]') return { endedAs: COMPLETED };
    const { choices } = JSON.parse(data) as { choices: { delta: { content?: string } }[] };
    const text = choices[0]?.delta.content;
    return text === undefined ? {} : { artifact: ANSWER, text };
  },
  textOf: ({ messages }) => {
    const { content } = (messages as { content: string | { text: string }[] }[]).at(-1)!;
    return typeof content === 'string' ? content : textOfParts(content);
  },
  answer: () => undefined,
  run: () => {
    const chunk = (more: object) =>
      frame({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'stand-in', ...more });
    return {
      begin: '',
      token: text => chunk({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] }),
      end: () => `${chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}data: [DONE]\n\n`,
    };
  },
};

export const WIRES = { 'a2a-1.0': a2a10, 'a2a-0.3': a2a03, langgraph, model } satisfies Record<string, Wire>;
export type WireName = keyof typeof WIRES;
