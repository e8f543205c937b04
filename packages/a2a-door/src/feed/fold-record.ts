import { type Fact, isVisible, type TaskControl } from '@hopline/events';
import type { StoredFacts } from '@hopline/log';
import { project, type TaskView } from '@hopline/task';

/** Folds one record. A log whose beginning retention has removed is folded from what its oldest record says of the task. */
export function foldRecord(
  view: TaskView | undefined,
  stored: StoredFacts,
  onFact: (view: TaskView, fact: Fact) => void = () => {},
): TaskView {
  const { facts, control } = stored.record;
  let folded = view ?? (facts[0]?.kind === 'task.created' ? undefined : seedView(control, facts));
  for (const fact of facts) {
    folded = project(folded, fact);
    onFact(folded, fact);
  }
  return folded ?? seedView(control, facts);
}

function seedView(control: TaskControl, facts: Fact[]): TaskView {
  const { taskId, contextId, state, at, generation } = control;
  const visible = facts.filter(isVisible).length;
  const task = { id: taskId, contextId, status: { state, timestamp: new Date(at).toISOString() } };
  return { task, generation: generation - visible };
}
