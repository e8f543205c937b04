import { endOf } from '@hopline/task-audit/waterfall';
import { useEffect, useMemo, useReducer, useState } from 'preact/hooks';
import { useAgents } from './agents.ts';
import { Axis, ZOOMS } from './axis.ts';
import { ChunkTable } from './chunk-table.tsx';
import type { Connection, ConsoleInfo } from './connection.ts';
import { ConversationView } from './conversation-view.tsx';
import { Explanation } from './explanation.tsx';
import { FrameTable } from './frame-table.tsx';
import { KillNotes } from './kill-menu.tsx';
import { visibleText } from './plain-text.ts';
import type { Playback, PlaybackAction } from './playback.ts';
import { type Processes, useProcesses } from './processes.ts';
import { linkTo, queryMember, setQuery } from './routes.ts';
import { Scrubber } from './scrubber.tsx';
import { TaskComposer } from './task-composer.tsx';
import { TaskHead } from './task-head.tsx';
import { TaskSession } from './task-session.ts';
import { TasksBelow } from './tasks-below.tsx';
import { Thread } from './thread.tsx';
import { TimelineView } from './timeline-view.tsx';
import { usePlayback } from './use-playback.ts';
import { WebhookList } from './webhook-list.tsx';

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

type TabsProps = { view: View; views: readonly View[]; onChange: (view: View) => void };

/** The tabs of the views. On a narrow screen the conversation is one of them; elsewhere it is shown beside the view. */
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
