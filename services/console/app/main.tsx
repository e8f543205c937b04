import { type RefObject, render } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { AgentPage } from './agent-page.tsx';
import { ClusterPage } from './cluster-page.tsx';
import { ComparePage } from './compare-page.tsx';
import { Connection, type ConsoleInfo } from './connection.ts';
import { forgetDrafts } from './drafts.ts';
import { FileButton, FileNotices, NoFile } from './file/file-views.tsx';
import { IS_STATIC, useFile } from './file/use-file.ts';
import { visibleText } from './plain-text.ts';
import {
  isInFragment,
  leaveFragment,
  linkTo,
  onLinkClick,
  type Route,
  route as routeAddress,
  titleOf,
  useRoute,
} from './routes.ts';
import { SignIn } from './sign-in.tsx';
import { TaskListPage } from './task-list-page.tsx';
import { TaskPage } from './task-page.tsx';

const connection = new Connection();
/** The page of a file may itself be a file, without an icon next to it. */
const ICON = document.querySelector<HTMLLinkElement>('link[rel=icon]')?.href ?? '';

function App() {
  const [route, visit] = useRoute();
  const isFile = IS_STATIC || isInFragment();
  const file = useFile();
  const [info, setInfo] = useState<ConsoleInfo>();
  const [fault, setFault] = useState('');
  const [asksForCredentials, setAsks] = useState(false);
  const [session, setSession] = useState(0);
  const [outage, setOutage] = useState('');
  connection.onUnauthenticated = () => setAsks(true);
  connection.onOutageChange = () => setOutage(connection.outage);
  useEffect(() => {
    if (isFile || info !== undefined) return;
    const stop = new AbortController();
    connection.jsonAnswered<ConsoleInfo>('/console.json', stop.signal).then(setInfo, error => {
      if (!stop.signal.aborted) setFault(String(error.message ?? error));
    });
    return () => stop.abort();
  }, [isFile]);
  const main = usePageChange(route);
  const signOut = () => {
    connection.signIn(undefined);
    forgetDrafts();
    setAsks(true);
  };
  const signedIn = () => {
    setAsks(false);
    setSession(session + 1);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: links keep their own behaviour.
    <div class={`shell shell-${route.page}`} onClick={onLinkClick}>
      <Header route={route} file={file} isFile={isFile} info={info} onSignOut={signOut} />
      <FileNotices file={file} />
      {outage !== '' && !isFile && (
        <p class="notice notice-error outage" role="alert">
          {outage}
        </p>
      )}
      {fault !== '' && !isFile && <p class="notice notice-error outage">The console cannot start: {fault}</p>}
      {!isFile && info !== undefined && asksForCredentials && (
        <SignIn connection={connection} apiKeyHeader={info.apiKeyHeader} onDone={signedIn} />
      )}
      {!isFile && info !== undefined && !asksForCredentials && (
        <main key={session} class="page" ref={main} tabIndex={-1}>
          <Page route={route} visit={visit} connection={connection} info={info} />
        </main>
      )}
      {isFile && (
        <main class="page" ref={main} tabIndex={-1}>
          {file.opened === undefined ? (
            <NoFile file={file} />
          ) : (
            <Page
              key={file.opened.path + file.opened.name}
              route={route}
              visit={visit}
              connection={file.opened.connection}
              info={{ version: '', writes: false, apiKeyHeader: '', links: {}, fileName: file.opened.name }}
            />
          )}
        </main>
      )}
    </div>
  );
}

/** The main element: after a change of the page it gets the focus, and the document its title. */
function usePageChange(route: Route): RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null);
  const shown = useRef(routeAddress().pathname);
  useEffect(() => {
    const { pathname } = routeAddress();
    if (shown.current === pathname) return;
    shown.current = pathname;
    // The clicked link may be gone, so the focus moves to the new page for keys and screen readers.
    main.current?.focus({ preventScroll: true });
  });
  // A task replaces its title with its question.
  useLayoutEffect(() => {
    document.title = titleOf(route);
  }, [routeAddress().pathname]);
  return main;
}

type HeaderProps = {
  route: Route;
  file: ReturnType<typeof useFile>;
  /** The page shows a file instead of a server. */
  isFile: boolean;
  info: ConsoleInfo | undefined;
  onSignOut: () => void;
};

function Header({ route, file, isFile, info, onSignOut }: HeaderProps) {
  const current = (page: string) => (route.page === page ? ({ 'aria-current': 'page' } as const) : {});
  return (
    <header class="bar">
      <a class="brand" href={linkTo('/')}>
        <img src={ICON} alt="" width="22" height="22" />
        <span class="brand-name">Hopline</span>
      </a>
      <nav aria-label="Pages">
        <a href={linkTo('/')} {...current('tasks')}>
          Tasks
        </a>
        <a href={linkTo('/compare')} {...current('compare')}>
          Compare
        </a>
        {!isFile && (
          <a href={linkTo('/cluster')} {...current('cluster')}>
            Cluster
          </a>
        )}
      </nav>
      <span class="bar-end">
        {isFile && file.opened !== undefined && (
          <span class="file-name small" title="This file is shown. It stays in this browser.">
            <bdi>{visibleText(file.opened.name)}</bdi>
          </span>
        )}
        <FileButton file={file} label={isFile ? 'Another file' : 'Open a file'} />
        {isFile && !IS_STATIC && (
          <button type="button" class="button button-quiet" onClick={() => leaveFragment('/')}>
            Close
          </button>
        )}
        {!isFile && info !== undefined && (
          <span class="muted small only-wide">
            {info.writes ? '' : 'read-only · '}v{info.version}
          </span>
        )}
        {!isFile && connection.isSignedIn && (
          <button type="button" class="button button-quiet" onClick={onSignOut}>
            Sign out
          </button>
        )}
      </span>
    </header>
  );
}

type PageProps = { route: Route; visit: number; connection: Connection; info: ConsoleInfo };

function Page({ route, visit, connection, info }: PageProps) {
  // The filters of the list are in the query, so the same path with another query is another page.
  const list = <TaskListPage key={visit} connection={connection} info={info} />;
  switch (route.page) {
    case 'task':
      return <TaskPage key={route.id} id={route.id} connection={connection} info={info} />;
    case 'compare':
      return <ComparePage key={`${route.a} ${route.b}`} a={route.a} b={route.b} connection={connection} />;
    case 'cluster':
      return info.fileName === undefined ? <ClusterPage connection={connection} info={info} /> : list;
    case 'agent':
      return info.fileName === undefined ? <AgentPage key={route.name} name={route.name} connection={connection} /> : list;
    default:
      return list;
  }
}

render(<App />, document.getElementById('app')!);
