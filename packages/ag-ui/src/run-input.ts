import { type ApprovalDecision, isObject, type JsonObject, type Part } from '@hopline/a2a';

/** The input of a run that cannot be served. The message begins with the wrong member. */
export class RunInputError extends Error {
  override readonly name = 'RunInputError';
}

/** The turn of a task that ended with a question. */
type InterruptRef = { taskId: string; turn: number };

/** A request for a run, in terms of A2A. */
export type RunRequest = {
  threadId: string;
  runId: string;
  parts: Part[];
  /** The answer as a decision about a call, if the question is one for an approval. */
  decision?: ApprovalDecision | undefined;
  /** The question that the run answers, or cancels; undefined for a new task. */
  interrupt: (InterruptRef & { isCancelled: boolean }) | undefined;
  /** Messages before the answer. */
  messages: unknown[];
  state: JsonObject;
};

const INTERRUPT_ID = /^([A-Za-z0-9_-]+)\.([1-9]\d{0,5})$/;

export function interruptIdOf({ taskId, turn }: InterruptRef): string {
  return `${taskId}.${turn}`;
}

/**
 * The question of a run is the last message of the user: agents read the earlier ones from the log. Later messages are the answer of a
 * resumed run. `tools` and `context` of the page are not passed on.
 */
export function runRequestOf(input: unknown): RunRequest {
  if (!isObject(input)) throw new RunInputError('the body must be the input of a run, a JSON object');
  const { messages, resume, state } = input;
  const [threadId, runId] = [idOf(input, 'threadId'), idOf(input, 'runId')];
  if (!Array.isArray(messages)) throw new RunInputError('messages must be an array');
  const asked = messages.findLastIndex((message: unknown) => isObject(message) && message.role === 'user');
  const known = { threadId, runId, state: isObject(state) ? state : {} };
  if (resume === undefined || (Array.isArray(resume) && resume.length === 0)) {
    const parts = partsOf((messages[asked] as JsonObject | undefined)?.content, `messages[${Math.max(0, asked)}].content`);
    return { ...known, parts, interrupt: undefined, messages: messages.slice(0, asked + 1) };
  }
  const entry: unknown = Array.isArray(resume) ? resume[0] : undefined;
  if (!isObject(entry) || (resume as unknown[]).length > 1)
    throw new RunInputError('resume must have exactly one entry, because a task asks one question at a time');
  const [, taskId, turn] = (typeof entry.interruptId === 'string' && INTERRUPT_ID.exec(entry.interruptId)) || [];
  if (taskId === undefined) throw new RunInputError('resume[0].interruptId must be the id of an interrupt of this server');
  const isCancelled = entry.status === 'cancelled';
  const parts = isCancelled ? [] : answerOf(entry.payload);
  const decision = isCancelled ? undefined : decisionOf(entry.payload);
  return { ...known, parts, decision, interrupt: { taskId, turn: Number(turn), isCancelled }, messages };
}

/** A person approves the arguments that they have seen, so a page cannot send others. */
function decisionOf(payload: unknown): ApprovalDecision | undefined {
  if (!isObject(payload) || typeof payload.approved !== 'boolean') return undefined;
  const { approved, reason, editedArgs } = payload;
  if (editedArgs !== undefined)
    throw new RunInputError('resume[0].payload.editedArgs cannot be used: a call runs with the arguments that were shown');
  return { approved, ...(typeof reason === 'string' && reason !== '' && { reason }) };
}

function idOf(input: JsonObject, member: string): string {
  const { [member]: id } = input;
  if (typeof id !== 'string' || id === '') throw new RunInputError(`${member} must be a string`);
  return id;
}

/** Pages answer with a text, or with an object that has one; another payload is data. */
function answerOf(payload: unknown): Part[] {
  if (typeof payload === 'string' && payload !== '') return [{ text: payload }];
  if (isObject(payload)) {
    for (const member of ['text', 'answer', 'response']) {
      const { [member]: text } = payload;
      if (typeof text === 'string' && Object.keys(payload).length === 1) return [{ text }];
    }
  }
  if (payload === undefined || payload === null || payload === '')
    throw new RunInputError('resume[0].payload must have the answer');
  return [{ data: payload }];
}

function partsOf(content: unknown, path: string): Part[] {
  if (typeof content === 'string' && content !== '') return [{ text: content }];
  if (Array.isArray(content) && content.length > 0)
    return content.map((part: unknown, index) => partOf(part, `${path}[${index}]`));
  throw new RunInputError(`${path} must be the text or the parts of a message of the user`);
}

function partOf(part: unknown, path: string): Part {
  if (!isObject(part)) throw new RunInputError(`${path} must be an object`);
  if (part.type === 'text' && typeof part.text === 'string') return { text: part.text };
  const { source } = part;
  if (isObject(source) && typeof source.value === 'string') {
    const mediaType = typeof source.mimeType === 'string' ? { mediaType: source.mimeType } : {};
    if (source.type === 'data') return { raw: source.value, ...mediaType };
    if (source.type === 'url') return { url: source.value, ...mediaType };
  }
  throw new RunInputError(`${path} must be a text, or have a source of the type data or url`);
}
