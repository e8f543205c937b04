import { duration } from '@hopline/task-audit/waterfall';
import type { KillableProcess } from '../src/kill-routes.ts';
import { Menu } from './menu.tsx';
import type { Kill, Processes } from './processes.ts';

/** The work that dies with a process, by service. */
const EFFECTS: Record<string, string> = {
  relay: 'stores the answer',
  ingress: 'streams it to this page',
  supervisor: 'plans it',
  'sub-agent': 'writes it',
  notifier: 'delivers webhooks',
  nats: 'keeps everything',
};
const ORDER = ['relay', 'ingress', 'supervisor', 'sub-agent', 'nats', 'notifier'];

type Props = {
  processes: Processes;
  /** The relay that owns the task, as the log names it. */
  relay: string | undefined;
  nowMs: () => number;
};

/** Kills a process of the local cluster with SIGKILL, in front of the person who watches the answer. */
export function KillMenu({ processes, relay, nowMs }: Props) {
  const { list } = processes;
  const relays = list.filter(({ service }) => service === 'relay');
  const owner = relays.find(({ instance }) => relay?.startsWith(instance)) ?? relays[0];
  const kill = ({ instance }: KillableProcess) => void processes.kill(instance, nowMs);
  const sorted = list.toSorted((a, b) => ORDER.indexOf(a.service) - ORDER.indexOf(b.service));
  return (
    <span class="split">
      {owner !== undefined && (
        <button
          type="button"
          class="button button-danger button-kill"
          disabled={owner.pid === null}
          title={`kill -9 ${owner.pid ?? ''}: the launcher restarts it`}
          onClick={() => kill(owner)}
        >
          Kill the relay
        </button>
      )}
      <Menu label="Kill another process" onOpen={() => void processes.read()}>
        {sorted.map(process => (
          <button
            key={process.instance}
            type="button"
            class="menu-item"
            disabled={process.pid === null}
            onClick={() => kill(process)}
          >
            <span>{process.instance}</span>
            <span class="muted small">{process.pid === null ? 'restarting' : EFFECTS[process.service]}</span>
          </button>
        ))}
      </Menu>
    </span>
  );
}

/** What happened, in a sentence for each kill. `outcome`: what became of the answer; empty while it is open. */
export function KillNotes({ kills, fault, outcome }: { kills: readonly Kill[]; fault: string; outcome: string }) {
  if (kills.length === 0 && fault === '') return null;
  return (
    <div class="kill-notes" role="status">
      {kills.map(({ instance, pid, atMs, againMs, againPid }) => (
        <p key={pid}>
          <strong>kill -9</strong> {instance} (process {pid}) at {duration(atMs)}.{' '}
          {againMs === undefined ? 'Restarting …' : `Running again as process ${againPid} after ${duration(againMs - atMs)}.`}
        </p>
      ))}
      {kills.length > 0 && outcome !== '' && <p class="good">{outcome}</p>}
      {fault !== '' && <p class="bad">{fault}</p>}
    </div>
  );
}
