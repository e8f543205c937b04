import { failureReason, type Message, type Task } from '@hopline/a2a';
import { duration, endOf } from '@hopline/task-audit/waterfall';
import { useEffect, useMemo, useReducer, useState } from 'preact/hooks';
import { type Agent, useAgents } from './agents.ts';
import { Axis, ZOOMS } from './axis.ts';
import { ChunkTable } from './chunk-table.tsx';
import type { Connection, ConsoleInfo } from './connection.ts';
import { textOfParts } from './conversation.ts';
import { ConversationView } from './conversation-view.tsx';
import { CopyButton } from './copy-button.tsx';
import { Explanation } from './explanation.tsx';
import { FrameTable } from './frame-table.tsx';
import { KillMenu, KillNotes } from './kill-menu.tsx';
import { excerpt, visibleText } from './plain-text.ts';
import type { Playback, PlaybackAction } from './playback.ts';
import { type Processes, useProcesses } from './processes.ts';
import { comparePath, linkTo, queryMember, setQuery } from './routes.ts';
import { Scrubber } from './scrubber.tsx';
import { ShareMenu } from './share-menu.tsx';
import { StatePill } from './state-pill.tsx';
import { RerunMenu, TaskComposer } from './task-composer.tsx';
import { TaskSession } from './task-session.ts';
import { TasksBelow } from './tasks-below.tsx';
import { Thread } from './thread.tsx';
import { TimelineView } from './timeline-view.tsx';
import { usePlayback } from './use-playback.ts';
import { WebhookList } from './webhook-list.tsx';

const TITLE_CHARS_MAX = 160;
const VIEWS = ['timeline', 'chunks', 'frames', 'webhooks'] as const;
/** A file has no deliveries. */
const FILE_VIEWS = VIEWS.filter(one => one !== 'webhooks');
type View = (typeof VIEWS)[number] | 'conversation';

export function TaskPage({ id, connection, info }: { id: string; connection: Connection; info: ConsoleInfo }) {
  const [version, redraw] = useReducer((count: number) => count + 1, 0);
  const [session] = useState(() => new TaskSession(id, connection, () => redraw(undefined)));
  useEffect(() => () => session.close(), [session]);
  const { recording, conversation, report } = session;
  const markers = useMemo(() => recording.markers(), [version]);
  const [playback, act] = usePlayback(session, version);
  const [view, setView] = useState<View>(() => viewOf(queryMember('view')));
  useEffect(() => setQuery({ view: view === 'timeline' ? '' : view }), [view]);
  const [showsSource, toggleSource] = useToggle('m');
  const agents = useAgents(connection);
  const processes = useProcesses(connection, info);
  const zoom = useZoom();
  const axis = new Axis(recording, report === undefined ? 0 : endOf(report), zoom.value, playback.playMs);
  const shown = conversation.at(playback.index + 1);
  // Nothing was read, so nothing can be played, exported or compared.
  if (session.fault !== '' && recording.length === 0) return <NoTask id={id} session={session} />;
  const { state } = conversation;
  return (
    <div class={`task view-${view}`}>
      <TaskHead
        {...{ id, session, connection, info, state, agents, processes }}
        stateAtPlayhead={playback.isLive || playback.index < 0 ? state : shown.state}
      />
      {session.fault !== '' && (
        <p class="notice notice-error" role="alert">
          {visibleText(session.fault)}
        </p>
      )}
      {processes !== undefined && <KillNotes kills={processes.kills} fault={processes.fault} outcome={outcomeOf(session)} />}
      <Tabs view={view} views={info.fileName === undefined ? VIEWS : FILE_VIEWS} onChange={setView} />
      <section class="task-conversation" id="conversation" aria-label="Conversation">
        <div class="conversation-bar">
          {session.task !== undefined && <Thread connection={connection} task={session.task} state={state} />}
          <button
            type="button"
            class="button button-quiet"
            aria-pressed={showsSource}
            onClick={toggleSource}
            title="m: the text of agents as it was written, or as Markdown"
          >
            Source
          </button>
        </div>
        <ConversationView value={shown} follows={playback.isLive || playback.isPlaying} showsSource={showsSource} />
        {info.writes && session.task !== undefined && (
          <TaskComposer
            connection={connection}
            task={session.task}
            state={state}
            approval={conversation.approval}
            agents={agents}
            forkCursor={playback.isLive || playback.isPlaying ? undefined : recording.items[playback.index]?.cursor}
          />
        )}
      </section>
      <Detail {...{ session, connection, info, view, axis, playback, processes, act }} />
      <Scrubber
        recording={recording}
        markers={markers}
        playback={playback}
        isEnded={session.isEnded || session.fault !== ''}
        isConnected={session.isConnected}
        act={act}
        axis={axis}
        zoom={zoom}
        version={version}
      />
    </div>
  );
}

type DetailProps = {
  session: TaskSession;
  connection: Connection;
  info: ConsoleInfo;
  view: View;
  axis: Axis;
  playback: Playback;
  processes: Processes | undefined;
  act: (action: PlaybackAction) => void;
};

/** The chosen view of the task. */
function Detail({ session, connection, info, view, axis, playback, processes, act }: DetailProps) {
  const { recording, report } = session;
  const seek = (index: number) => act({ type: 'index', index });
  return (
    <section class="task-detail" id="detail" role="tabpanel" aria-label={view === 'conversation' ? 'timeline' : view}>
      {(view === 'timeline' || view === 'conversation') && (
        <TimelineView
          report={report}
          fault={session.auditFault}
          axis={axis}
          idle={recording.idleSpans()}
          playMs={playback.playMs}
          kills={processes?.kills}
          onSeek={playMs => act({ type: 'play', playMs })}
          explain={atMs => {
            const item = recording.items[Math.max(0, recording.indexAtMs(atMs))];
            if (item === undefined || item.cursor === '') return null;
            return <Explanation path={session.path} connection={connection} cursor={item.cursor} />;
          }}
          below={known => info.showsBelow === true && <TasksBelow taskId={session.id} connection={connection} known={known} />}
        />
      )}
      {view === 'chunks' && (
        <ChunkTable
          session={session}
          connection={connection}
          current={recording.items[playback.index]?.generation}
          onSeek={seek}
        />
      )}
      {view === 'frames' && (
        <FrameTable
          session={session}
          connection={connection}
          hasDialects={info.fileName === undefined}
          index={playback.index}
          onSeek={seek}
        />
      )}
      {view === 'webhooks' && <WebhookList session={session} connection={connection} />}
    </section>
  );
}

function NoTask({ id, session }: { id: string; session: TaskSession }) {
  return (
    <div class="empty" role="alert">
      <strong>{session.isMissing ? 'Task not found' : visibleText(session.fault)}</strong>
      <p class="muted">
        {session.isMissing && 'None of your tasks has this id; it may have expired: '}
        <code>{visibleText(id)}</code>
      </p>
      <p>
        <a class="button" href={linkTo('/')}>
          All tasks
        </a>
      </p>
    </div>
  );
}

/** On a narrow screen the conversation is a tab; elsewhere the timeline is shown beside it. */
type TabsProps = { view: View; views: readonly View[]; onChange: (view: View) => void };

function Tabs({ view, views, onChange }: TabsProps) {
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const tabs = [...event.currentTarget.querySelectorAll('button')].filter(({ offsetParent }) => offsetParent !== null);
    const next = tabs[(tabs.indexOf(event.target as HTMLButtonElement) + step + tabs.length) % tabs.length]!;
    // Elsewhere on the page these keys move the playhead.
    event.stopPropagation();
    event.preventDefault();
    next.focus();
    next.click();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views of the task" onKeyDown={onKeyDown}>
      {(['conversation', ...views] as const).map(one => (
        <button
          key={one}
          type="button"
          role="tab"
          class={one === 'conversation' ? 'only-narrow' : ''}
          aria-selected={view === one}
          aria-controls={one === 'conversation' ? one : 'detail'}
          tabIndex={view === one || (view === 'conversation' && one === 'timeline') ? 0 : -1}
          onClick={() => onChange(one)}
        >
          {one}
        </button>
      ))}
    </div>
  );
}

function viewOf(text: string): View {
  return VIEWS.find(one => one === text) ?? 'timeline';
}

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

function TaskHead({ stateAtPlayhead, ...props }: TaskActionsProps & { stateAtPlayhead: string }) {
  const { id, session, state, info } = props;
  const { report, task } = session;
  const agents = [...new Set(report?.producers.map(({ agent }) => agent) ?? [])];
  const endMs = report?.events.at(-1)?.atMs;
  const question = excerpt(textOfParts(firstMessage(task)?.parts ?? []), TITLE_CHARS_MAX);
  useEffect(() => {
    // Tabs and entries of the history are told apart by what was asked.
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
        report?.traces.slice(0, 1).map(trace => (
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

/** Describes the answer after processes were killed; empty while its outcome is unknown. */
function outcomeOf({ conversation, report, isEnded }: TaskSession): string {
  if (!isEnded || report === undefined || report.audit.incomplete) return '';
  const isWhole = Object.values(report.audit.unaccounted).every(count => count === 0) && report.audit.differing.length === 0;
  const tokens = report.producers.reduce((sum, producer) => sum + producer.tokens, 0);
  if (conversation.state !== 'completed' || !isWhole) return '';
  return `Completed: all ${tokens.toLocaleString('en')} tokens of its agents are stored, and no character was lost.`;
}

/** The zoom of the axis, which keys and buttons change. */
function useZoom() {
  const [step, setStep] = useState(0);
  const by = (steps: number) => setStep(before => Math.min(ZOOMS.length - 1, Math.max(0, before + steps)));
  useEffect(() => {
    const onKey = ({ key, target, ctrlKey, altKey, metaKey }: KeyboardEvent) => {
      const steps = { '+': 1, '=': 1, '-': -1 }[key];
      if (steps === undefined || ctrlKey || altKey || metaKey) return;
      if (!(target as HTMLElement).matches?.('input, textarea, select')) by(steps);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return { value: ZOOMS[step]!, canGrow: step < ZOOMS.length - 1, by };
}

/** A choice that a key or a button changes. */
function useToggle(toggleKey: string): [boolean, () => void] {
  const [isOn, set] = useState(false);
  const toggle = () => set(before => !before);
  useEffect(() => {
    const onKey = ({ key, target, ctrlKey, altKey, metaKey }: KeyboardEvent) => {
      if (key === toggleKey && !ctrlKey && !altKey && !metaKey && !(target as HTMLElement).matches?.('input, textarea, select'))
        toggle();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return [isOn, toggle];
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
