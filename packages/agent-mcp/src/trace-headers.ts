import { AsyncLocalStorage } from 'node:async_hooks';
import type { Turn } from '@hopline/agent';

/**
 * Trace context of the call to which a request belongs. It is set here, because a session sends the requests of all turns, and the SDK sets
 * its headers only once.
 */
const traces = new AsyncLocalStorage<Turn['trace']>();

type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

/** Runs a call so that its HTTP requests have the trace context. */
export function withTraceHeaders<T>(trace: Turn['trace'], call: () => Promise<T>): Promise<T> {
  return traces.run(trace, call);
}

/** Adds the trace context of the current call. */
export function tracedFetch(fetch: Fetch): Fetch {
  return (url, init) => {
    const trace = traces.getStore();
    if (trace === undefined) return fetch(url, init);
    const headers = new Headers(init?.headers);
    for (const [name, value] of Object.entries(trace)) headers.set(name, value);
    return fetch(url, { ...init, headers });
  };
}
