import { type Fact, type FactRecord, isVisible, type TaskAggregate } from '@hopline/events';
import { project, type TaskView } from './project.ts';

/** Folds one record. A log whose beginning retention has removed is folded from what its oldest record says of the task. */
export function projectRecord(
  view: TaskView | undefined,
  { facts, aggregate }: FactRecord,
  onFact: (view: TaskView, fact: Fact) => void = () => {},
): TaskView {
  let folded = view ?? (facts[0]?.kind === 'task.created' ? undefined : seedView(aggregate, facts));
  for (const fact of facts) {
    folded = project(folded, fact);
    onFact(folded, fact);
  }
  return folded ?? seedView(aggregate, facts);
}

function seedView(aggregate: TaskAggregate, facts: Fact[]): TaskView {
  const { taskId, contextId, state, at, generation } = aggregate;
  const visible = facts.filter(isVisible).length;
  const task = { id: taskId, contextId, status: { state, timestamp: new Date(at).toISOString() } };
  return { task, generation: generation - visible };
}
