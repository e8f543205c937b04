import { useEffect, useState } from 'preact/hooks';
import { visibleText } from './plain-text.ts';

export type Route =
  | { page: 'tasks' }
  | { page: 'task'; id: string }
  | { page: 'compare'; a: string; b: string }
  | { page: 'cluster' }
  | { page: 'agent'; name: string };

/** The page of a path. An unknown path is the list. */
export function routeOf(pathname: string): Route {
  const [page, first, second, ...more] = segmentsOf(pathname);
  if (more.length > 0) return { page: 'tasks' };
  if (page === 'cluster' && first === undefined) return { page };
  if (page === 'agents' && first !== undefined && first !== '' && second === undefined) return { page: 'agent', name: first };
  if (page === 'tasks' && first !== undefined && second === undefined) return { page: 'task', id: first };
  if (page === 'compare') return { page, a: first ?? '', b: second ?? '' };
  return { page: 'tasks' };
}

function segmentsOf(pathname: string): string[] {
  try {
    return pathname.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return [];
  }
}

/** The title of the window, which distinguishes tabs and entries of the history. */
export function titleOf(route: Route): string {
  const names = { tasks: 'Tasks', task: 'Task', compare: 'Compare', cluster: 'Cluster', agent: 'Agent' };
  const id = route.page === 'task' ? ` ${visibleText(route.id)}` : route.page === 'agent' ? ` ${visibleText(route.name)}` : '';
  return `${names[route.page]}${id} · Hopline`;
}

export const taskPath = (id: string) => `/tasks/${encodeURIComponent(id)}`;
export const agentPath = (name: string) => `/agents/${encodeURIComponent(name)}`;
/** `b` may be empty; the page then asks for it. */
export const comparePath = (a: string, b: string) =>
  ['/compare', a, b]
    .filter(part => part !== '')
    .map((part, index) => (index === 0 ? part : encodeURIComponent(part)))
    .join('/');

const CHANGED = 'hopline:navigate';

/**
 * Whether the route is in the fragment, as it is while a file is shown: no server has the paths of the file's tasks, and the static page of
 * a file may change only its fragment.
 */
export const isInFragment = () => location.hash.startsWith('#/');

/** The path and query of the page, wherever they are. */
export const route = (): URL =>
  new URL(isInFragment() ? location.hash.slice(1) : location.pathname + location.search, 'http://page');

/** An `href` that leads to a path of this page. */
export const linkTo = (path: string): string => (isInFragment() ? `#${path}` : path);

export function navigate(path: string): void {
  history.pushState(null, '', linkTo(path));
  dispatchEvent(new Event(CHANGED));
  scrollTo(0, 0);
}

/** Moves the route into the fragment, or back. `keepsPath`: the page is the static one of a file. */
export function enterFragment(path: string, keepsPath: boolean): void {
  history.pushState(null, '', `${keepsPath ? '' : '/'}#${path}`);
  dispatchEvent(new Event(CHANGED));
}

export function leaveFragment(path: string): void {
  history.pushState(null, '', path);
  dispatchEvent(new Event(CHANGED));
}

/** A member of the query; empty if it is absent. */
export const queryMember = (name: string): string => route().searchParams.get(name) ?? '';

/** Members of the query. Empty ones are omitted. Replaces the entry of the history. */
export function setQuery(members: Readonly<Record<string, string>>): void {
  const url = route();
  const before = url.href;
  for (const [name, value] of Object.entries(members)) {
    if (value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== before) history.replaceState(null, '', linkTo(url.pathname + url.search));
}

/** The route and the number of visits so far, because a link or the history may lead to the same path with another query. */
export function useRoute(): [Route, number] {
  const [{ path, visit }, set] = useState({ path: route().pathname, visit: 0 });
  useEffect(() => {
    const update = () => set(before => ({ path: route().pathname, visit: before.visit + 1 }));
    addEventListener('popstate', update);
    addEventListener(CHANGED, update);
    return () => {
      removeEventListener('popstate', update);
      removeEventListener(CHANGED, update);
    };
  }, []);
  return [routeOf(path), visit];
}

/** A link within the page. With a modifier key the browser handles it as any other link. */
export function onLinkClick(event: MouseEvent): void {
  const link = (event.target as Element).closest?.('a');
  if (link === null || link === undefined || link.origin !== location.origin || link.target !== '') return;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const path = isInFragment() ? link.hash.slice(1) : link.pathname + link.search;
  // Other links of the page of a file, such as those of the documentation, stay as they are.
  if (!path.startsWith('/')) return;
  event.preventDefault();
  navigate(path);
}
