import type { TaskBelow } from '@hopline/task-audit';
import { duration } from '@hopline/task-audit/waterfall';
import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { visibleText } from './plain-text.ts';

type Props = {
  taskId: string;
  connection: Connection /** Tasks of remote agents that are known; the tree is read again when there are more. */;
  known: number;
};

/** The tasks below a task: what agents that are clusters themselves ran for it, as a tree. */
export function TasksBelow({ taskId, connection, known }: Props) {
  const [tasks, setTasks] = useState<readonly TaskBelow[]>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    connection.jsonAnswered<{ tasks: TaskBelow[] }>(`/below/${encodeURIComponent(taskId)}`, signal).then(
      answer => !signal.aborted && setTasks(answer.tasks),
      thrown => !signal.aborted && setFault(thrown instanceof Error ? thrown.message : String(thrown)),
    );
    return () => stop.abort();
  }, [taskId, known]);
  return (
    <section class="totals">
      <h2 class="lane-group">Tasks below</h2>
      {tasks !== undefined && <Level tasks={tasks} />}
      {tasks === undefined && (
        <p class="muted">{fault === '' ? 'Reading the clusters below …' : `Not read: ${visibleText(fault)}.`}</p>
      )}
    </section>
  );
}

function Level({ tasks }: { tasks: readonly TaskBelow[] }) {
  return (
    <ul class="task-tree">
      {tasks.map(task => (
        <li key={`${task.agent} ${task.turn} ${task.attempt} ${task.taskId}`}>
          <strong>
            <bdi>{visibleText(task.agent)}</bdi>
          </strong>{' '}
          <Place task={task} /> <span class={task.audited?.state === 'failed' ? 'bad' : 'muted'}>{outcomeOf(task)}</span>
          {task.below.length > 0 && <Level tasks={task.below} />}
        </li>
      ))}
    </ul>
  );
}

/** The id, as a link to the agent's server if its address is known: that page leads to the console of the cluster. */
function Place({ task: { taskId, url } }: { task: TaskBelow }) {
  const id = <code>{visibleText(taskId)}</code>;
  if (url === undefined || !/^https?:/.test(url)) return id;
  return (
    <a href={url} target="_blank" rel="noreferrer noopener" title={`The server of this task: ${visibleText(url)}`}>
      {id}
    </a>
  );
}

function outcomeOf({ turn, attempt, audited, fault }: TaskBelow): string {
  const again = [...(turn > 1 ? [`turn ${turn}`] : []), ...(attempt > 1 ? [`attempt ${attempt}`] : [])];
  if (audited === undefined) return [...again, visibleText(fault ?? 'not read')].join(', ');
  const { state, durationMs, tokens } = audited;
  return [...again, visibleText(state), duration(durationMs), `${tokens.toLocaleString('en')} tokens`].join(', ');
}
