import type { Task } from '@hopline/a2a';
import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { visibleText } from './plain-text.ts';
import { linkTo, taskPath } from './routes.ts';
import { rowOf, type TaskRow } from './task-rows.ts';

/** Tasks of a conversation that are listed, the newest ones. */
const TASKS_MAX = 20;

/** The tasks of the conversation in their order, if it has more than this one. */
export function Thread({ connection, task, state }: { connection: Connection; task: Task; state: string }) {
  const [rows, setRows] = useState<readonly TaskRow[]>([]);
  useEffect(() => {
    let isCurrent = true;
    const query = new URLSearchParams({ contextId: task.contextId, pageSize: String(TASKS_MAX), historyLength: '1' });
    connection.json<{ tasks: Task[] }>(`/api/tasks?${query}`).then(
      ({ tasks }) => {
        if (isCurrent) setRows(tasks.map(one => rowOf(one)).toSorted((a, b) => a.at.localeCompare(b.at)));
      },
      // The page works without the list.
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [task.contextId, state]);
  if (rows.length < 2) return null;
  return (
    <nav class="thread small" aria-label="Tasks of this conversation">
      {rows.map(({ id, question }, index) => (
        <a
          key={id}
          href={linkTo(taskPath(id))}
          title={visibleText(question)}
          {...(id === task.id && { 'aria-current': 'page' as const })}
        >
          <span class="muted">{index + 1}</span> <bdi>{question === '' ? visibleText(id) : question}</bdi>
        </a>
      ))}
    </nav>
  );
}
