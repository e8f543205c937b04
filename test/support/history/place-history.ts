import { type Task, textOf } from '@hopline/a2a';
import { type Fact, isVisible } from '@hopline/events';
import { project, type TaskView } from '@hopline/task';
import type { History, Operation, RecordedHistory, Shown } from './history.ts';
import type { HistoryReport } from './verify-history.ts';

/** The facts that the log has of a task at the end; undefined if it has none. */
type FactsOf = (taskId: string) => readonly Fact[] | undefined;

/**
 * Places every task that a client was shown among the events of the task. Reports those in which the task never was as shown, and leaves
 * out the response, unless the log may have lost the facts that were shown.
 */
export function placeHistory(recorded: RecordedHistory, factsOf: FactsOf, mayHaveLost: boolean, report: HistoryReport): History {
  const shown = Map.groupBy(recorded.flatMap(responsesOf), ({ task }) => task.id);
  const places = new Map<Task, Shown | undefined>();
  for (const [taskId, responses] of shown) {
    const generations = generationsOf(responses, factsOf(taskId) ?? []);
    for (const [index, { task, isWhole }] of responses.entries()) {
      const generation = generations[index];
      const messageIds = isWhole ? (task.history ?? []).map(({ messageId }) => messageId) : undefined;
      places.set(task, generation && { taskId, state: task.status.state, generation, messageIds });
    }
  }
  return recorded.flatMap(operation => {
    const unknown = responsesOf(operation).find(({ task }) => places.get(task) === undefined);
    if (unknown === undefined) return [placed(operation, task => places.get(task)!)];
    if (!mayHaveLost)
      report(
        'a response shows the task as the log had it',
        `${operation.kind} of ${operation.client} at ${operation.replica}: ${JSON.stringify(unknown.task)}`,
        unknown.task.id,
      );
    return [];
  });
}

/** A task in a response. `isWhole`: with all of its artifacts and messages. */
type Response = { task: Task; isWhole: boolean };

function responsesOf(operation: Operation<Task>): Response[] {
  if (operation.kind === 'stream') return [];
  if (operation.kind === 'list') return operation.tasks.map(({ task }) => ({ task, isWhole: false }));
  const isWhole = operation.kind !== 'send' || operation.showsStateOnly !== true;
  return typeof operation.result === 'object' ? [{ task: operation.result.task, isWhole }] : [];
}

function placed(operation: Operation<Task>, shownOf: (task: Task) => Shown): Operation<Shown> {
  switch (operation.kind) {
    case 'stream':
      return operation;
    case 'list':
      return { ...operation, tasks: operation.tasks.map(one => ({ ...one, task: shownOf(one.task) })) };
    case 'read':
      return { ...operation, result: operation.result === 'not found' ? 'not found' : { task: shownOf(operation.result.task) } };
    case 'send':
    case 'cancel': {
      const { result } = operation;
      return { ...operation, result: typeof result === 'object' ? { task: shownOf(result.task) } : result };
    }
  }
}

/** The first and the last generation at which the task was as each response shows it. */
function generationsOf(responses: readonly Response[], facts: readonly Fact[]): (Shown['generation'] | undefined)[] {
  const found: (Shown['generation'] | undefined)[] = responses.map(() => undefined);
  let view: TaskView | undefined;
  for (const fact of facts) {
    view = project(view, fact);
    if (!isVisible(fact) && fact.kind !== 'message.received') continue;
    for (const [index, response] of responses.entries()) {
      if (!isShownBy(response, view.task)) continue;
      const from = found[index]?.from ?? view.generation;
      found[index] = { from, to: view.generation };
    }
  }
  return found;
}

/** Whether the response was possible while the task was `stored`. */
function isShownBy({ task: shown, isWhole }: Response, stored: Task): boolean {
  if (shown.status.state !== stored.status.state || shown.status.timestamp !== stored.status.timestamp) return false;
  if (!isWhole) return true;
  return (
    areSame(shown.history, stored.history, ({ messageId }) => messageId) &&
    areSame(shown.artifacts, stored.artifacts, ({ artifactId }) => artifactId) &&
    areSame(shown.artifacts, stored.artifacts, ({ parts }) => textOf(parts))
  );
}

function areSame<T>(some: readonly T[] = [], others: readonly T[] = [], keyOf: (one: T) => string): boolean {
  return some.length === others.length && some.every((one, index) => keyOf(one) === keyOf(others[index]!));
}
