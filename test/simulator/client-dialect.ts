import {
  clientTaskId,
  DIALECTS,
  type Dialect,
  type DialectName,
  isAmbiguous,
  isInProgress,
  type JsonObject,
  type Message,
  type Metadata,
  type Operation,
  type StreamResponse,
  type Task,
  unversionedDialect,
} from '@hopline/a2a';
import type { ArtifactIndex } from '@hopline/a2a-server';

export type DialectPlan = {
  name: DialectName;
  /** Its requests name no version, like those of older SDKs. */
  isUnversioned: boolean;
  /** A send waits for the end of its turn, which is the default of every version, and all that the form of April 2025 has. */
  isBlocking: boolean;
};

type Sent = {
  message: Message;
  /** URL of a webhook that comes with the message. */
  webhookUrl?: string | undefined;
  metadata?: Metadata | undefined;
  /** The client's own id of a task that the message may begin. Only the form of April 2025 has one. */
  chosenTaskId: string;
  isStreaming: boolean;
  /** The server derives the id of the message from that of the task. Only the form of April 2025 allows this. */
  hasNoMessageId?: boolean | undefined;
};

const PUSH_ID = 'hook';

/** The wire form of one client: its requests, and responses as it reads them. */
export class ClientDialect {
  readonly name: DialectName;
  readonly #dialect: Dialect;
  readonly #isUnversioned: boolean;
  readonly #isBlocking: boolean;

  constructor({ name, isUnversioned, isBlocking }: DialectPlan) {
    this.name = name;
    this.#dialect = DIALECTS[name];
    this.#isUnversioned = isUnversioned;
    this.#isBlocking = isBlocking;
  }

  /** Only 1.0 lists tasks over JSON-RPC. */
  get hasLists(): boolean {
    return this.#dialect.methods.list !== undefined;
  }

  /** What the JSON-RPC binding concludes from the version and the method of a request. */
  negotiated(operation: Operation): { dialect: Dialect; ambiguous?: boolean } {
    const method = this.#dialect.methods[operation];
    if (!this.#isUnversioned || method === undefined) return { dialect: this.#dialect };
    return { dialect: unversionedDialect(method), ambiguous: isAmbiguous(method) };
  }

  /** The id of a task in a request. */
  idOf(taskId: string): string {
    return this.name === 'legacy' ? clientTaskId(taskId) : taskId;
  }

  send({ message: sent, webhookUrl, metadata, chosenTaskId, isStreaming, hasNoMessageId }: Sent): object {
    const { messageId: _messageId, ...withoutId } = sent;
    const message = hasNoMessageId ? (withoutId as Message) : sent;
    const push = webhookUrl === undefined ? undefined : { id: PUSH_ID, url: webhookUrl };
    if (this.name === '1.0') {
      const configuration = isStreaming ? push && { taskPushNotificationConfig: push } : { returnImmediately: !this.#isBlocking };
      return { message, ...(configuration && { configuration }), ...(metadata && { metadata }) };
    }
    const chosen = this.name === 'legacy' && { chosenTaskId: message.taskId ? this.idOf(message.taskId) : chosenTaskId };
    return this.#dialect.encodeSend({
      message,
      blocking: this.#isBlocking,
      ...chosen,
      ...(push && { push }),
      ...(metadata && { metadata }),
    });
  }

  createPush(taskId: string, url: string): object {
    if (this.name === '1.0') return { taskId, id: PUSH_ID, url };
    if (this.name === '0.3') return { taskId, pushNotificationConfig: { id: PUSH_ID, url } };
    return { id: this.idOf(taskId), pushNotificationConfig: { url } };
  }

  /** Reads the answer of an operation on a task. `sent`: the answer as the server has encoded it. */
  answer(operation: Operation, sent: unknown, taskId: string): unknown {
    if (this.name === '1.0' || !ANSWERED_BY_TASK.has(operation)) return sent;
    const read = this.#read(sent as JsonObject, taskId);
    const task = 'task' in read ? read.task : { ...UNREADABLE, id: taskId, metadata: { sent } };
    return operation === 'send' ? { task } : task;
  }

  /** Reads an event. `sent`: the dialect in which the server sends it. */
  event(sent: Dialect, event: StreamResponse, indexOf: ArtifactIndex): StreamResponse {
    if (this.name === '1.0' && sent.name === '1.0') return event;
    const index = 'artifactUpdate' in event ? indexOf(event.artifactUpdate.artifact.artifactId) : undefined;
    return this.#readFrame(sent, sent.encodeEvent(event, index), taskIdIn(event));
  }

  /** Reads the frames of a snapshot. The form of April 2025 has no event for a whole task: its artifacts come first, then its state. */
  snapshot(sent: Dialect, task: Task): Task {
    if (this.name === '1.0' && sent.name === '1.0') return task;
    const events = sent.encodeSnapshot(task).map(result => this.#readFrame(sent, result, task.id));
    const last = events.at(-1)!;
    if ('task' in last) return last.task;
    if (!('statusUpdate' in last)) return { ...UNREADABLE, id: task.id, metadata: { sent: events } };
    const { taskId: id, contextId, status } = last.statusUpdate;
    const artifacts = events.flatMap(event => ('artifactUpdate' in event ? [event.artifactUpdate.artifact] : []));
    return { id, contextId, status, artifacts };
  }

  #readFrame(sent: Dialect, result: JsonObject, taskId: string): StreamResponse {
    const frame = JSON.parse(`{"result":${sent.frameText(result)}}`) as { result: JsonObject };
    return this.#read(frame.result, taskId);
  }

  /** Returns a value of another form as it is, which then differs from the log. */
  #read(result: JsonObject, taskId: string): StreamResponse {
    const id = this.idOf(taskId);
    const isOfForm = this.name === 'legacy' ? 'sessionId' in result && result.id === id : 'kind' in result;
    const inLog = id === taskId ? result : (JSON.parse(JSON.stringify(result), renamed(id, taskId)) as JsonObject);
    const read = this.#dialect.decodeEvent(inLog);
    if (!isOfForm || !('event' in read)) return result as StreamResponse;
    if ('statusUpdate' in read.event && result.final !== endsStream(read.event.statusUpdate.status.state))
      return result as StreamResponse;
    return read.event;
  }
}

const ANSWERED_BY_TASK: ReadonlySet<Operation> = new Set(['send', 'get', 'cancel']);

/** A task in place of an answer that its client cannot read. */
const UNREADABLE: Task = { id: '', contextId: '', status: { state: 'unreadable' as Task['status']['state'] } };

/** Messages inside a task name it, too. */
const renamed = (from: string, to: string) => (name: string, value: unknown) =>
  (name === 'id' || name === 'taskId') && value === from ? to : value;

/** Whether a message stream of an older dialect ends with this state: credentials arrive out of band, so a request for them does not end it. */
function endsStream(state: Task['status']['state']): boolean {
  return !isInProgress(state) && state !== 'TASK_STATE_AUTH_REQUIRED';
}

function taskIdIn(event: StreamResponse): string {
  if ('task' in event) return event.task.id;
  if ('statusUpdate' in event) return event.statusUpdate.taskId;
  return 'artifactUpdate' in event ? event.artifactUpdate.taskId : '';
}
