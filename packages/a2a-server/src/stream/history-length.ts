import type { Task } from '@hopline/a2a';

/** The task with at most `length` of its newest messages. Absent: all. 0: no history member ([A2A 1.0] 3.2.4). */
export function withHistory(task: Task, length: number | undefined): Task {
  if (length === undefined || task.history === undefined) return task;
  const { history, ...rest } = task;
  return length === 0 ? rest : { ...rest, history: history.slice(-length) };
}
