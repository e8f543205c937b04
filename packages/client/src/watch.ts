import { A2AError, type Task } from '@hopline/a2a/client';
import { type ClientView, ViewFold } from '@hopline/task-view';
import type { StreamItem } from './stream-position.ts';

/** The turn ended without an answer: the task failed, was rejected or was canceled, or it waits for the client. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
  /** The task as it is, with its question or the reason of its failure. */
  readonly view: ClientView;

  constructor(view: ClientView) {
    super(endReasonOf(view));
    this.view = view;
  }
}

/** Yields a view after each event that changed it. `get` reads the task from a server that refuses to stream ended tasks. */
export async function* viewsOf(
  items: AsyncIterable<StreamItem>,
  { continues, get }: { continues?: boolean; get?: () => Promise<Task> },
): AsyncGenerator<ClientView, void, undefined> {
  const fold = new ViewFold({ ...(continues && { continues }) });
  for await (const item of get === undefined ? items : tasksWithoutStream(items, get)) {
    if (fold.add(item).length > 0) yield fold.view;
  }
}

/** The items of a stream, or the current task from a server that refuses to stream it. */
export async function* tasksWithoutStream(
  items: AsyncIterable<StreamItem>,
  get: () => Promise<Task>,
): AsyncGenerator<StreamItem, void, undefined> {
  try {
    yield* items;
  } catch (thrown) {
    // A server without cursors refuses to stream a task that has ended ([A2A 1.0] 3.1.6).
    if (!(thrown instanceof A2AError) || thrown.code !== 'UNSUPPORTED_OPERATION') throw thrown;
    yield { cursor: undefined, event: { task: await get() } };
  }
}

/** The answer of a turn, from its views. Rejects with NoAnswerError. */
export async function answerOf(views: AsyncIterable<ClientView>, onView: (view: ClientView) => void = () => {}): Promise<string> {
  let last: ClientView | undefined;
  for await (const view of views) {
    last = view;
    onView(view);
  }
  if (last === undefined) throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the stream of the answer has no event' });
  if (last.state !== 'TASK_STATE_COMPLETED') throw new NoAnswerError(last);
  return last.answer;
}

function endReasonOf({ state, question, failure }: ClientView): string {
  const word = state.replace('TASK_STATE_', '').replaceAll('_', '-').toLowerCase();
  const detail = question?.text ?? failure ?? '';
  return `the task is ${word}${detail === '' ? '' : `: ${detail}`}`;
}
