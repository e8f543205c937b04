import { failureReason, type Message, type Task } from '@hopline/a2a';
import { duration } from '@hopline/task-audit/waterfall';
import { useEffect } from 'preact/hooks';
import type { Agent } from './agents.ts';
import type { Connection, ConsoleInfo } from './connection.ts';
import { textOfParts } from './conversation.ts';
import { CopyButton } from './copy-button.tsx';
import { KillMenu } from './kill-menu.tsx';
import { excerpt, visibleText } from './plain-text.ts';
import type { Processes } from './processes.ts';
import { comparePath, linkTo } from './routes.ts';
import { ShareMenu } from './share-menu.tsx';
import { StatePill } from './state-pill.tsx';
import { RerunMenu } from './task-composer.tsx';
import type { TaskSession } from './task-session.ts';

const TITLE_CHARS_MAX = 160;

type TaskActionsProps = {
  id: string;
  session: TaskSession;
  connection: Connection;
  info: ConsoleInfo;
  /** The newest state, which determines the possible actions wherever the playhead is. */
  state: string;
  agents: readonly Agent[];
  processes: Processes | undefined;
};

/** The question of a task, its state and figures, and its actions. `stateAtPlayhead`: its state at the shown event. */
export function TaskHead({ stateAtPlayhead, ...props }: TaskActionsProps & { stateAtPlayhead: string }) {
  const { id, session, state, info } = props;
  const { report, task } = session;
  const agents = [...new Set(report?.producers.map(({ agent }) => agent) ?? [])];
  const endMs = report?.events.at(-1)?.atMs;
  const question = excerpt(textOfParts(firstMessage(task)?.parts ?? []), TITLE_CHARS_MAX);
  useEffect(() => {
    // The question distinguishes tabs and entries of the history.
    if (question !== '') document.title = `${question} · Hopline`;
  }, [question]);
  const reason = task === undefined || !/^(?:failed|rejected)$/.test(state) ? '' : failureReason(task.status, task.metadata);
  return (
    <header class="task-head">
      <div class="task-head-title">
        <a class="muted" href={linkTo('/')}>
          Tasks
        </a>
        <span class="muted" aria-hidden="true">
          /
        </span>
        <h1 title={question}>
          <bdi>{question === '' ? visibleText(id) : question}</bdi>
        </h1>
        {/* A state that changes is read to people who do not see it; the text of an answer is not. */}
        <span role="status">
          <StatePill state={state === '' ? 'loading' : state} />
        </span>
        {reason !== '' && (
          <span class="bad small task-reason" title={visibleText(reason + hintFor(reason, info))}>
            <bdi>{excerpt(reason + hintFor(reason, info), TITLE_CHARS_MAX)}</bdi>
          </span>
        )}
        {stateAtPlayhead !== state && (
          <span class="muted small">
            at the playhead: <StatePill state={stateAtPlayhead} />
          </span>
        )}
      </div>
      <div class="facts">
        <dl class="facts-list">
          {endMs !== undefined && <Fact name="time" value={duration(endMs)} />}
          {agents.length > 0 && <Fact name="agents" value={agents.map(visibleText).join(', ')} />}
          {report !== undefined && <Fact name="relays" value={String(new Set(report.relays.map(({ relay }) => relay)).size)} />}
          {report !== undefined && <Accounting report={report} />}
          <div class="task-id">
            <dt class="visually-hidden">id</dt>
            <dd>
              <code class="muted small">{visibleText(id)}</code>
              <CopyButton text={() => id} label="Copy the id of the task" />
            </dd>
          </div>
        </dl>
        <TaskActions {...props} />
      </div>
    </header>
  );
}

/** The links and buttons of a task. */
function TaskActions({ id, session, connection, info, state, agents, processes }: TaskActionsProps) {
  const { report, task } = session;
  const { jaeger } = info.links;
  const message = firstMessage(task);
  const nowMs = () => Math.max(0, Date.now() - (session.recording.startedAtMs ?? Date.now()));
  const isOpen = state !== '' && !/^(completed|failed|canceled|rejected)$/.test(state);
  return (
    <span class="facts-end">
      {jaeger !== undefined &&
        report?.traces
          .filter(trace => report.unsampled?.includes(trace) !== true)
          .slice(0, 1)
          .map(trace => (
            <a
              key={trace}
              class="button"
              href={`${jaeger.replace(/\/$/, '')}/trace/${encodeURIComponent(trace)}`}
              target="_blank"
              rel="noreferrer noopener"
            >
              Trace
            </a>
          ))}
      <a class="button" href={linkTo(comparePath(id, ''))} title="This task beside another one">
        Compare
      </a>
      {info.fileName === undefined && <ExportButton path={`${session.path}/export`} id={id} connection={connection} />}
      {info.fileName === undefined && <ShareMenu id={id} path={session.path} isSignedIn={connection.isSignedIn} />}
      {info.writes && message !== undefined && <RerunMenu connection={connection} id={id} message={message} agents={agents} />}
      {info.writes && isOpen && <CancelButton session={session} connection={connection} />}
      {processes !== undefined && <KillMenu processes={processes} relay={report?.relays.at(-1)?.relay} nowMs={nowMs} />}
    </span>
  );
}

/** The error of an agent that threw may have content, so only the terminal of its author shows it. A console of `npm start` has a `killToken`. */
function hintFor(reason: string, { killToken }: ConsoleInfo): string {
  return killToken !== undefined && /\bthe agent failed$/.test(reason) ? ' (its error is on the terminal of npm start)' : '';
}

function firstMessage(task: Task | undefined): Message | undefined {
  return task?.history?.find(({ role }) => role === 'ROLE_USER');
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <bdi>{value}</bdi>
      </dd>
    </div>
  );
}

/** Whether each input of the task became a fact. */
function Accounting({ report: { audit } }: { report: NonNullable<TaskSession['report']> }) {
  const lost = Object.entries(audit.unaccounted).filter(([, count]) => count !== 0);
  const isBalanced = lost.length === 0 && audit.differing.length === 0;
  const text = audit.incomplete
    ? 'records expired'
    : isBalanced
      ? 'nothing lost'
      : `differs: ${lost.map(([kind, count]) => `${kind} ${count}`).join(', ')}`;
  return (
    <div title="The inputs of the task, folded again, against its stored facts">
      <dt>inputs</dt>
      <dd class={audit.incomplete ? '' : isBalanced ? 'good' : 'bad'}>{text}</dd>
    </div>
  );
}

function ExportButton({ path, id, connection }: { path: string; id: string; connection: Connection }) {
  const save = async () => {
    const response = await connection.open(path);
    const link = document.createElement('a');
    link.href = URL.createObjectURL(await response.blob());
    link.download = `${id.replaceAll(/[^\w.-]/g, '_')}.hopline.jsonl`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <button
      type="button"
      class="button"
      onClick={() => void save().catch(error => alert(error.message))}
      title="The task as a file, for hopline replay and serve"
    >
      Export
    </button>
  );
}

function CancelButton({ session, connection }: { session: TaskSession; connection: Connection }) {
  const cancel = () => {
    if (confirm('Cancel this task? Its agents stop.'))
      connection.post(`${session.path}:cancel`, {}).catch(error => alert(error.message));
  };
  return (
    <button type="button" class="button button-danger" onClick={cancel}>
      Cancel
    </button>
  );
}
