/**
 * Wire shapes of third-party agents, written from the specifications without code under test. 0.3 has the exact shapes of the CAIPE
 * event flow (S0): `final`, `append` and `contextId` are absent where its samples have none.
 */
export type RemoteDialect = '0.2' | '0.3' | '1.0';
export type RemoteState =
  | 'submitted'
  | 'working'
  | 'completed'
  | 'failed'
  | 'canceled'
  | 'rejected'
  | 'input-required'
  | 'auth-required';
export type Json = { [name: string]: unknown };
export type RemoteIds = { taskId: string; contextId: string };

/** A message of a script; `parts` are in the agent's own dialect. */
type MessageFields = { messageId: string; text?: string; parts?: Json[]; metadata?: Json };
export type ArtifactFields = {
  artifactId: string;
  name?: string;
  description?: string;
  text?: string;
  parts?: Json[];
  metadata?: Json;
};

export interface Shapes {
  task(ids: RemoteIds, state: RemoteState, more: { history: Json[]; artifacts: Json[]; message?: Json }): Json;
  message(ids: RemoteIds, fields: MessageFields): Json;
  /** The caller's message in the task's history. */
  userMessage(ids: RemoteIds, message: Json): Json;
  artifact(fields: ArtifactFields): Json;
  statusUpdate(ids: RemoteIds, state: RemoteState, message: Json | undefined, metadata: Json | undefined): Json;
  artifactUpdate(ids: RemoteIds, artifact: Json, append: boolean | undefined, lastChunk: boolean | undefined): Json;
  /** Result of a blocking send, and of the first event of a stream. */
  taskResult(task: Json): Json;
  messageResult(message: Json): Json;
}

const present = (members: Json): Json => Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
const TERMINAL: readonly RemoteState[] = ['completed', 'failed', 'canceled', 'rejected'];

const shapes03: Shapes = {
  task: (ids, state, { history, artifacts, message }) => ({
    kind: 'task',
    id: ids.taskId,
    contextId: ids.contextId,
    status: present({ state, message }),
    history,
    ...(artifacts.length > 0 && { artifacts }),
  }),
  message: (ids, fields) =>
    present({
      kind: 'message',
      role: 'agent',
      messageId: fields.messageId,
      contextId: ids.contextId,
      taskId: ids.taskId,
      parts: fields.parts ?? [{ kind: 'text', text: fields.text ?? '' }],
      metadata: fields.metadata,
    }),
  userMessage: (ids, message) => ({ ...message, kind: 'message', taskId: ids.taskId, contextId: ids.contextId }),
  artifact: ({ text, parts, ...fields }) => present({ ...fields, parts: parts ?? [{ kind: 'text', text: text ?? '' }] }),
  statusUpdate: (ids, state, message, metadata) => {
    const final = TERMINAL.includes(state) || state === 'input-required';
    // The sample of the last event has neither contextId nor message (S0-25).
    const contextId = final && message === undefined ? undefined : ids.contextId;
    return present({
      kind: 'status-update',
      final,
      contextId,
      taskId: ids.taskId,
      status: present({ state, message }),
      metadata,
    });
  },
  artifactUpdate: (ids, artifact, append, lastChunk) =>
    present({ kind: 'artifact-update', taskId: ids.taskId, contextId: ids.contextId, artifact, append, lastChunk }),
  taskResult: task => task,
  messageResult: message => message,
};

const state10 = (state: RemoteState) => `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}`;

const shapes10: Shapes = {
  task: (ids, state, { history, artifacts, message }) => ({
    id: ids.taskId,
    contextId: ids.contextId,
    status: present({ state: state10(state), message }),
    ...(history.length > 0 && { history }),
    ...(artifacts.length > 0 && { artifacts }),
  }),
  message: (ids, fields) =>
    present({
      messageId: fields.messageId,
      contextId: ids.contextId,
      taskId: ids.taskId,
      role: 'ROLE_AGENT',
      parts: fields.parts ?? [{ text: fields.text ?? '' }],
      metadata: fields.metadata,
    }),
  userMessage: (ids, message) => ({ ...message, taskId: ids.taskId, contextId: ids.contextId }),
  artifact: ({ text, parts, ...fields }) => present({ ...fields, parts: parts ?? [{ text: text ?? '' }] }),
  statusUpdate: (ids, state, message, metadata) => ({
    statusUpdate: present({ ...ids, status: present({ state: state10(state), message }), metadata }),
  }),
  artifactUpdate: (ids, artifact, append, lastChunk) => ({
    // ProtoJSON omits false.
    artifactUpdate: present({ ...ids, artifact, append: append || undefined, lastChunk: lastChunk || undefined }),
  }),
  taskResult: task => ({ task }),
  messageResult: message => ({ message }),
};

export const SHAPES: Record<RemoteDialect, Shapes> = { '0.2': shapes03, '0.3': shapes03, '1.0': shapes10 };

export type Method = 'send' | 'stream' | 'get' | 'cancel' | 'subscribe';

const METHODS_03: Record<string, Method> = {
  'message/send': 'send',
  'message/stream': 'stream',
  'tasks/get': 'get',
  'tasks/cancel': 'cancel',
  'tasks/resubscribe': 'subscribe',
};

export const METHODS: Record<RemoteDialect, Record<string, Method>> = {
  '0.2': METHODS_03,
  '0.3': METHODS_03,
  '1.0': {
    SendMessage: 'send',
    SendStreamingMessage: 'stream',
    GetTask: 'get',
    CancelTask: 'cancel',
    SubscribeToTask: 'subscribe',
  },
};

export type CardOptions = {
  name?: string;
  description?: string;
  streaming?: boolean;
  pushNotifications?: boolean;
  skills?: Json[];
};

/** Path and content of the agent card; `url` is the endpoint. */
export function cardOf(dialect: RemoteDialect, url: string, options: CardOptions): { path: string; card: Json } {
  const base = {
    name: options.name ?? 'Remote Agent',
    description: options.description ?? 'A scripted agent',
    version: '1.0.0',
    capabilities: {
      streaming: options.streaming ?? true,
      ...(options.pushNotifications !== undefined && { pushNotifications: options.pushNotifications }),
    },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: options.skills ?? [{ id: 'script', name: 'Script', description: 'Plays a script', tags: ['script'] }],
  };
  if (dialect === '0.2') return { path: '/.well-known/agent.json', card: { ...base, url } };
  const path = '/.well-known/agent-card.json';
  if (dialect === '0.3') return { path, card: { ...base, url, protocolVersion: '0.3.0', preferredTransport: 'JSONRPC' } };
  return { path, card: { ...base, supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] } };
}
