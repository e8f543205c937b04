import { isTerminal, type Message, type StreamResponse, type Task } from '@hopline/a2a';
import { sleep } from '@hopline/client/sleep';
import type { TaskReport } from '@hopline/task-audit';
import { type Connection, refusalOf } from './connection.ts';
import { Conversation } from './conversation.ts';
import { followTask } from './follow-task.ts';
import { Recording } from './recording.ts';
import { ShownPage } from './shown-page.ts';

/** Minimum interval of the audits of a task in progress, because an audit reads the whole task. */
const AUDIT_MS_MIN = 4_000;
/** How long the first audit waits for the end of the stream, because ingress would otherwise read the task for both at the same time. */
const FIRST_AUDIT_MS = 1_000;
/** Wait after a refusal, when two audits are already running. */
const AUDIT_RETRY_MS = 1_500;

/** One task that the page follows: its events, its history and its audit. Calls `onChange` after changes, at most once per frame. */
export class TaskSession {
  readonly recording = new Recording();
  readonly conversation = new Conversation();
  task: Task | undefined;
  report: TaskReport | undefined;
  /** Why the audit is missing; the text comes from the server. */
  auditFault = '';
  fault = '';
  /** No task of this user has the id. */
  isMissing = false;
  isConnected = false;
  isEnded = false;
  readonly id: string;
  readonly #connection: Connection;
  readonly #onChange: () => void;
  readonly #stop = new AbortController();
  /** The streams of the task are open only while the page is shown. */
  readonly shown = new ShownPage(this.#stop.signal);
  /** When the next audit may begin, by `performance.now()`, which is never set back. */
  #auditAtMs = performance.now() + FIRST_AUDIT_MS - AUDIT_MS_MIN;
  #auditTimer: ReturnType<typeof setTimeout> | undefined;
  #isAuditing = false;
  #isRefreshing = false;
  #isStale = false;
  #auditedEvents = -1;
  #isChangePending = false;

  constructor(id: string, connection: Connection, onChange: () => void) {
    this.id = id;
    this.#connection = connection;
    this.#onChange = onChange;
    void this.#follow();
    void this.refreshTask();
    this.#scheduleAudit();
  }

  close(): void {
    this.#stop.abort();
    clearTimeout(this.#auditTimer);
  }

  get path(): string {
    return `/api/tasks/${encodeURIComponent(this.id)}`;
  }

  /** Reads the task. Calls during a request share the next one, because the stored events of many turns arrive at once. */
  async refreshTask(): Promise<void> {
    this.#isStale = true;
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    while (this.#isStale) {
      this.#isStale = false;
      try {
        this.task = await this.#connection.json<Task>(this.path, { signal: this.#stop.signal });
        this.conversation.setHistory((this.task.history ?? []) as Message[]);
        this.#changed();
      } catch {
        // The stream reports the error.
      }
    }
    this.#isRefreshing = false;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    const open = (cursor: string) =>
      this.shown.open(shown =>
        this.#connection.open(`${this.path}:subscribe`, {
          headers: { 'last-event-id': cursor, accept: 'text/event-stream' },
          signal: shown,
        }),
      );
    try {
      for await (const item of followTask({ taskId: this.id, open, sleep, signal })) {
        if ('connected' in item) this.isConnected = item.connected;
        else if ('gap' in item) this.#add(undefined, 'gap');
        else this.#add(item.cursor, item.event);
        this.#changed();
      }
      this.isEnded = true;
      if (this.task === undefined || !isTerminal(this.task.status.state)) void this.refreshTask();
      this.#scheduleAudit(0);
    } catch (error) {
      if (signal.aborted) return;
      const { status, message } = refusalOf(error);
      this.isMissing = status === 404;
      this.fault = message;
    }
    this.isConnected = false;
    this.#changed();
  }

  #add(cursor: string | undefined, event: StreamResponse | 'gap'): void {
    this.recording.add(cursor, event, Date.now());
    this.conversation.add(event);
    if (event !== 'gap' && 'statusUpdate' in event) {
      if (event.statusUpdate.status.state === 'TASK_STATE_WORKING') void this.refreshTask();
    }
    this.#scheduleAudit();
  }

  #scheduleAudit(waitMs = Math.max(0, this.#auditAtMs + AUDIT_MS_MIN - performance.now())): void {
    if (this.#stop.signal.aborted || this.#isAuditing) return;
    if (waitMs > 0 && this.#auditTimer !== undefined) return;
    clearTimeout(this.#auditTimer);
    this.#auditTimer = setTimeout(() => void this.#audit(), waitMs);
  }

  async #audit(): Promise<void> {
    this.#auditTimer = undefined;
    this.#isAuditing = true;
    this.#auditAtMs = performance.now();
    const events = this.recording.length;
    let retryMs: number | undefined;
    try {
      this.report = await this.#connection.json<TaskReport>(`${this.path}/audit`, { signal: this.#stop.signal });
      this.auditFault = '';
      this.#auditedEvents = events;
      this.recording.setTimes(this.report);
    } catch (error) {
      const { status, message } = refusalOf(error);
      if (status === 503 || status === 429 || status === undefined) retryMs = AUDIT_RETRY_MS;
      else {
        this.auditFault = message;
        this.recording.setTimes(undefined);
      }
    }
    this.#isAuditing = false;
    if (retryMs !== undefined) this.#scheduleAudit(retryMs);
    // Events arrived while the audit ran.
    else if (this.auditFault === '' && this.recording.length > this.#auditedEvents) this.#scheduleAudit(AUDIT_MS_MIN);
    this.#changed();
  }

  #changed(): void {
    if (this.#isChangePending || this.#stop.signal.aborted) return;
    this.#isChangePending = true;
    // A hidden page gets no frames.
    const run = () => {
      this.#isChangePending = false;
      this.#onChange();
    };
    if (document.hidden) setTimeout(run, 100);
    else requestAnimationFrame(run);
  }
}
