import { type CallStarted, queueNotice, queueText } from '@hopline/events';
import type { InputWriter, Job, QueueWaits } from '@hopline/log';
import { type Profile, withKind } from '@hopline/profiles';
import { SUPERVISOR } from '@hopline/task';
import type { TurnView } from './turn-view.ts';

type CallWaitsOptions = {
  waits: QueueWaits;
  job: Pick<Job, 'work'>;
  view: TurnView;
  writer: InputWriter;
  /** Undefined if the supervisor has no such profile. */
  profile: Profile | undefined;
  isLive: (agent: string) => boolean;
  /** Called if a notice cannot be written. The timer that asks for the places is shared by all turns of the process. */
  fail: (error: unknown) => void;
};

/**
 * The calls of a turn whose agents have written nothing yet. While one of them waits for a slot of its agent, the client reads how many
 * requests are ahead, or that the agent is not available. The notice is a status or, in profiles where progress is an artifact, an artifact
 * that is emptied when the agent's turn begins.
 */
export class CallWaits {
  /** Calls that may wait. */
  readonly open = new Set<string>();
  readonly #options: CallWaitsOptions;

  constructor(options: CallWaitsOptions) {
    this.#options = options;
  }

  /** The call is stored, so that its item is queued. */
  begin({ call, agent }: Pick<CallStarted, 'call' | 'agent'>): void {
    const { waits, job, view } = this.#options;
    if (this.open.has(call) || this.#isOver(call)) return;
    this.open.add(call);
    const { taskId, owner } = job.work;
    const role = `agent.${agent}` as const;
    const isStatus = this.#progress === 'status';
    waits.add(this.#key(call), {
      role,
      taskId,
      ...(owner && { owner }),
      wasShown: isStatus ? view.aggregate?.queued === true : view.isOpen(this.#lane(call)),
      show: ahead => this.#orFail(() => this.#show(call, agent, ahead)),
      clear: () => this.#orFail(() => this.#clear(call, agent)),
    });
  }

  /** Ends the waits of the calls whose agents have written. Called after every record while calls are open. */
  settle(): void {
    for (const call of this.open) {
      if (!this.#isOver(call)) continue;
      this.open.delete(call);
      this.#options.waits.end(this.#key(call));
    }
  }

  /** The turn is over, or continues in another process. */
  stop(): void {
    for (const call of this.open) this.#options.waits.drop(this.#key(call));
    this.open.clear();
  }

  #isOver(call: string): boolean {
    const { view } = this.#options;
    return view.aggregate?.producers[call] !== undefined || view.ended(call) !== undefined;
  }

  #orFail(write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#options.fail(error);
    }
  }

  #show(call: string, agent: string, ahead: number): void {
    const { writer, isLive } = this.#options;
    const place = { role: `agent.${agent}` as const, ahead, ...(!isLive(agent) && { isAway: true as const }) };
    const message = queueNotice(`${this.#lane(call)}-${ahead}`, place);
    if (this.#progress === 'status') writer.add({ kind: 'queued', message });
    else this.#artifact(call, agent, queueText(place), message.metadata);
  }

  #clear(call: string, agent: string): void {
    if (this.#progress === 'status') this.#options.writer.add({ kind: 'queued' });
    else this.#artifact(call, agent, '');
  }

  /** This artifact is removed at the end of the task, because the wait is of no interest later. An empty text closes it. */
  #artifact(call: string, agent: string, text: string, place: object = {}): void {
    if (this.#progress === 'status' || this.#progress === undefined) return;
    const metadata = { sourceAgent: SUPERVISOR, tool: agent, toolCallId: call, ...place };
    const artifact = withKind({ ...this.#progress, transitory: true as const, metadata }, 'progress');
    const lane = this.#lane(call);
    const chunk = { parts: [{ text }], append: false, last: text === '' };
    this.#options.writer.add({ kind: 'artifact', lane, artifact, ...chunk });
  }

  get #progress(): Profile['agent']['progress'] | undefined {
    return this.#options.profile?.agent.progress;
  }

  #lane(call: string): string {
    return `${this.#options.job.work.turn}/${call}/queue`;
  }

  #key(call: string): string {
    return `${this.#options.job.work.taskId} ${call}`;
  }
}
