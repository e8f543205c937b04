import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ClusterPage } from './cluster-page.tsx';
import { ComparePage } from './compare-page.tsx';
import { Connection, type ConsoleInfo, UnreachableError } from './connection.ts';
import { onLinkClick, titleOf, useRoute } from './routes.ts';
import { SignIn } from './sign-in.tsx';
import { TaskListPage } from './task-list-page.tsx';
import { TaskPage } from './task-page.tsx';

const connection = new Connection();

function App() {
  const route = useRoute();
  const [info, setInfo] = useState<ConsoleInfo>();
  const [fault, setFault] = useState('');
  const [asksForCredentials, setAsks] = useState(false);
  const [session, setSession] = useState(0);
  const [outage, setOutage] = useState('');
  connection.onUnauthenticated = () => setAsks(true);
  connection.onOutageChange = () => setOutage(connection.outage);
  useEffect(() => {
    if (info !== undefined || outage !== '') return;
    connection.json<ConsoleInfo>('/console.json').then(setInfo, error => {
      if (!(error instanceof UnreachableError)) setFault(String(error.message ?? error));
    });
  }, [outage]);
  const main = useRef<HTMLElement>(null);
  const shown = useRef(location.pathname);
  useEffect(() => {
    document.title = titleOf(route);
    if (shown.current === location.pathname) return;
    shown.current = location.pathname;
    // The clicked link may be gone, so the focus moves to the new page for keys and screen readers.
    main.current?.focus({ preventScroll: true });
  });
  const signOut = () => {
    connection.signIn(undefined);
    setAsks(true);
  };
  const signedIn = () => {
    setAsks(false);
    setSession(session + 1);
  };
  const current = (page: string) => (route.page === page ? ({ 'aria-current': 'page' } as const) : {});
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: links keep their own behaviour.
    <div class={`shell shell-${route.page}`} onClick={onLinkClick}>
      <header class="bar">
        <a class="brand" href="/">
          <img src="/icon.svg" alt="" width="22" height="22" />
          Hopline
        </a>
        <nav aria-label="Pages">
          <a href="/" {...current('tasks')}>
            Tasks
          </a>
          <a href="/compare" {...current('compare')}>
            Compare
          </a>
          <a href="/cluster" {...current('cluster')}>
            Cluster
          </a>
        </nav>
        <span class="bar-end">
          {info !== undefined && (
            <span class="muted small only-wide">
              {info.writes ? '' : 'read-only · '}v{info.version}
            </span>
          )}
          {connection.isSignedIn && (
            <button type="button" class="button button-quiet" onClick={signOut}>
              Sign out
            </button>
          )}
        </span>
      </header>
      {outage !== '' && (
        <p class="notice notice-error outage" role="alert">
          {outage}
        </p>
      )}
      {fault !== '' && <p class="notice notice-error outage">The console cannot start: {fault}</p>}
      {info !== undefined && asksForCredentials && (
        <SignIn connection={connection} apiKeyHeader={info.apiKeyHeader} onDone={signedIn} />
      )}
      {info !== undefined && !asksForCredentials && (
        <main key={session} class="page" ref={main} tabIndex={-1}>
          {route.page === 'tasks' && <TaskListPage connection={connection} info={info} />}
          {route.page === 'task' && <TaskPage key={route.id} id={route.id} connection={connection} info={info} />}
          {route.page === 'compare' && (
            <ComparePage key={`${route.a} ${route.b}`} a={route.a} b={route.b} connection={connection} />
          )}
          {route.page === 'cluster' && <ClusterPage connection={connection} info={info} />}
        </main>
      )}
    </div>
  );
}

render(<App />, document.getElementById('app')!);
