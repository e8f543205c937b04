import { type Message, type Metadata, type Task, type TaskState, textOf } from '@hopline/a2a';

/**
 * The part of an ended task that a page of a list shows, so that a list need not read records of tasks. It has the members of the task
 * without its artifacts, as far as they fit in LISTED_TASK_BYTES_MAX, and the words and agents that filters search.
 */
export type ListedTask = {
  /** Messages in the whole history. */
  messages: number;
  /** The newest messages of the history. Ids of the task are replaced by empty strings. */
  history?: Message[];
  /** Message of the status, with the same empty ids. */
  message?: Message;
  metadata?: Metadata;
  /** Time of the status. Absent if the row has it. */
  timestamp?: string;
  /** True if `message` or `metadata` is too large for a row. A list then reads the task itself. */
  cut?: true;
  /** Beginning of the first question. Absent if `history` contains all of it. */
  question?: string;
  /** Beginning of the text of the newest artifact that has text. */
  answer?: string;
  /** Agents of the task (`agentsOf`). Absent if they do not fit, and in rows of earlier versions. A filter by agent then reads the task. */
  agents?: string[];
};

/** Bytes of the JSON of a listed task. A question of one or two sentences and its answer take 300 to 500. */
export const LISTED_TASK_BYTES_MAX = 1_024;
/** Bytes of the JSON of the beginning of a question or an answer. */
export const LISTED_TEXT_BYTES_MAX = 256;
/** Bytes of the JSON of the agents: eight of the longest names. */
export const LISTED_AGENTS_BYTES_MAX = 288;

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** `at`: the time in the row, in epoch milliseconds. */
export function listedTaskOf(task: Task, at?: number): ListedTask {
  const { status, metadata, artifacts = [] } = task;
  const history = (task.history ?? []).map(message => withIds(message, task, NO_IDS));
  const { timestamp } = status;
  const isTimeOfRow = timestamp === undefined || at === undefined || timestamp === new Date(at).toISOString();
  const question = history.find(({ role }) => role === 'ROLE_USER');
  const answer = artifacts.map(({ parts }) => textOf(parts)).findLast(text => text !== '');
  const agents = agentsOf(task);
  const words = {
    messages: history.length,
    ...(!isTimeOfRow && { timestamp }),
    ...(question !== undefined && { question: beginningOf(textOf(question.parts)) }),
    ...(answer !== undefined && { answer: beginningOf(answer) }),
    ...(bytesOf(agents) <= LISTED_AGENTS_BYTES_MAX && { agents }),
  };
  const shown = {
    ...words,
    ...(status.message && { message: withIds(status.message, task, NO_IDS) }),
    ...(metadata && { metadata }),
  };
  if (bytesOf(shown) > LISTED_TASK_BYTES_MAX) return { ...words, cut: true };
  let listed: ListedTask = shown;
  for (let first = history.length - 1; first >= 0; first -= 1) {
    const { question: beginning, ...rest } = shown;
    const hasQuestion = question === undefined || first <= history.indexOf(question);
    const longer = { ...rest, ...(!hasQuestion && { question: beginning! }), history: history.slice(first) };
    if (bytesOf(longer) > LISTED_TASK_BYTES_MAX) break;
    listed = longer;
  }
  return listed;
}

/** The task as a row shows it. `row` has the other members. */
export function taskOfRow(row: { taskId: string; contextId: string; state: TaskState; at: number; listed: ListedTask }): Task {
  const { taskId: id, contextId, state, at } = row;
  const { message, history, metadata, timestamp = new Date(at).toISOString() } = row.listed;
  const ids = { id, contextId };
  return {
    ...ids,
    status: { state, timestamp, ...(message && { message: withIds(message, NO_IDS, ids) }) },
    ...(history && { history: history.map(one => withIds(one, NO_IDS, ids)) }),
    ...(metadata && { metadata }),
  };
}

type Ids = Pick<Task, 'id' | 'contextId'>;
/** The task's ids take a fifth of a short message. */
const NO_IDS: Ids = { id: '', contextId: '' };

function withIds(message: Message, known: Ids, ids: Ids): Message {
  return {
    ...message,
    ...(message.contextId === known.contextId && { contextId: ids.contextId }),
    ...(message.taskId === known.id && { taskId: ids.id }),
  };
}

/** Whether a text occurs in a question, in the beginning of the answer, or in the reason of a failure, ignoring case. */
export function hasText({ history = [], message, metadata, question = '', answer = '' }: ListedTask, text: string): boolean {
  const wanted = text.toLowerCase();
  const messages = [...history.filter(({ role }) => role === 'ROLE_USER'), ...(message ? [message] : [])];
  const reason = typeof metadata?.reason === 'string' ? metadata.reason : '';
  return [question, answer, reason, ...messages.map(({ parts }) => textOf(parts))].some(one =>
    one.toLowerCase().includes(wanted),
  );
}

/** The agents in whose name the artifacts of a task are, and those that its messages named. */
export function agentsOf({ artifacts = [], history = [] }: Pick<Task, 'artifacts' | 'history'>): string[] {
  const names = [...artifacts.map(({ metadata }) => metadata?.sourceAgent), ...history.map(({ metadata }) => metadata?.agent)];
  return [...new Set(names.filter(name => typeof name === 'string'))];
}

/** As many whole characters as fit in LISTED_TEXT_BYTES_MAX. */
function beginningOf(text: string): string {
  const characters = [...text.slice(0, LISTED_TEXT_BYTES_MAX)];
  let bytes = 2;
  let end = 0;
  while (end < characters.length) {
    bytes += bytesOf(characters[end]!) - 2;
    if (bytes > LISTED_TEXT_BYTES_MAX) break;
    end += 1;
  }
  return characters.slice(0, end).join('');
}
