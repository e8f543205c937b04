import { useEffect, useState } from 'preact/hooks';
import { visibleText } from './plain-text.ts';

export type Route =
  | { page: 'tasks' }
  | { page: 'task'; id: string }
  | { page: 'compare'; a: string; b: string }
  | { page: 'cluster' };

/** The page of a path. An unknown path is the list. */
export function routeOf(pathname: string): Route {
  const [page, first, second, ...more] = segmentsOf(pathname);
  if (more.length > 0) return { page: 'tasks' };
  if (page === 'cluster' && first === undefined) return { page };
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
  const names = { tasks: 'Tasks', task: 'Task', compare: 'Compare', cluster: 'Cluster' };
  const id = route.page === 'task' ? ` ${visibleText(route.id)}` : '';
  return `${names[route.page]}${id} · Hopline`;
}

export const taskPath = (id: string) => `/tasks/${encodeURIComponent(id)}`;
/** `b` may be empty; the page then asks for it. */
export const comparePath = (a: string, b: string) =>
  ['/compare', a, b]
    .filter(part => part !== '')
    .map((part, index) => (index === 0 ? part : encodeURIComponent(part)))
    .join('/');

const CHANGED = 'hopline:navigate';

export function navigate(path: string): void {
  history.pushState(null, '', path);
  dispatchEvent(new Event(CHANGED));
  scrollTo(0, 0);
}

/** Members of the query. Empty ones are omitted. Replaces the entry of the history. */
export function setQuery(members: Readonly<Record<string, string>>): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(members)) {
    if (value === '') url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== location.href) history.replaceState(null, '', url);
}

export function useRoute(): Route {
  const [path, setPath] = useState(location.pathname);
  useEffect(() => {
    const update = () => setPath(location.pathname);
    addEventListener('popstate', update);
    addEventListener(CHANGED, update);
    return () => {
      removeEventListener('popstate', update);
      removeEventListener(CHANGED, update);
    };
  }, []);
  return routeOf(path);
}

/** A link within the page. With a modifier key the browser handles it as any other link. */
export function onLinkClick(event: MouseEvent): void {
  const link = (event.target as Element).closest?.('a');
  if (link === null || link === undefined || link.origin !== location.origin || link.target !== '') return;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}
