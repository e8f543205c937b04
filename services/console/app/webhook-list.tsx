import { useEffect, useState } from 'preact/hooks';
import { type Connection, refusalOf, UnreachableError } from './connection.ts';
import { ageText, visibleText } from './plain-text.ts';
import type { TaskSession } from './task-session.ts';

/** Webhooks as ingress lists them, without secrets. */
type Webhook = {
  id: string;
  url: string;
  dialect: string;
  state: 'delivering' | 'failing' | 'delivered' | 'abandoned';
  generation: number;
  failures: number;
  failingSince?: string;
  retryAt?: string;
};

/** Shown for a 404. */
const NO_WEBHOOKS = 'This ingress has no webhooks (HOPLINE_PUSH is off).';
/** Polling interval while a webhook still gets events. */
const READ_MS = 3_000;

/** The progress of each webhook of the task. */
export function WebhookList({ session, connection }: { session: TaskSession; connection: Connection }) {
  const { webhooks, fault } = useWebhooks(session, connection);
  const newest = session.recording.items.at(-1)?.generation ?? 0;
  if (fault !== '') return <p class="muted pad">{visibleText(fault)}</p>;
  if (webhooks === undefined) return <p class="muted pad">Reading …</p>;
  if (webhooks.length === 0) return <p class="muted pad">The task has no webhooks.</p>;
  return (
    <div class="webhooks">
      <table>
        <thead>
          <tr>
            <th>webhook</th>
            <th>state</th>
            <th class="number">events</th>
            <th class="number">failures</th>
          </tr>
        </thead>
        <tbody>
          {webhooks.map(({ id, url, dialect, state, generation, failures, failingSince, retryAt }) => (
            <tr key={id}>
              <td>
                <code>{visibleText(url)}</code>
                <div class="muted small">
                  <bdi>{visibleText(id)}</bdi>, A2A {visibleText(dialect)}
                </div>
              </td>
              <td>
                <span class={`dot ${state === 'failing' || state === 'abandoned' ? 'dot-off' : 'dot-on'}`} /> {state}
                {failingSince !== undefined && <div class="muted small">since {ageText(failingSince, Date.now())}</div>}
                {retryAt !== undefined && <div class="muted small">next attempt {new Date(retryAt).toLocaleTimeString()}</div>}
              </td>
              <td class="number">
                {Math.min(generation, newest)} / {newest}
              </td>
              <td class="number">{failures}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function useWebhooks(session: TaskSession, connection: Connection): { webhooks: Webhook[] | undefined; fault: string } {
  const [webhooks, setWebhooks] = useState<Webhook[]>();
  const [fault, setFault] = useState('');
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      let isOver = false;
      try {
        const found = await connection.json<{ webhooks: Webhook[] }>(`${session.path}/deliveries`, { signal: stop.signal });
        setWebhooks(found.webhooks);
        setFault('');
        isOver = session.isEnded && found.webhooks.every(({ state }) => state === 'delivered' || state === 'abandoned');
      } catch (error) {
        if (stop.signal.aborted) return;
        const { status, message } = refusalOf(error);
        isOver = status === 404;
        if (!(error instanceof UnreachableError)) setFault(isOver ? NO_WEBHOOKS : `The webhooks cannot be read: ${message}.`);
      }
      if (!isOver && !stop.signal.aborted) timer = setTimeout(() => void read(), READ_MS);
    };
    void read();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [session]);
  return { webhooks, fault };
}
