import { type FactLog, HistoryLost, type RecordMark, type ShardProgress, SharedNext, taskOfFactsId } from '@hopline/log';

/**
 * A task that has had no input for this long is quiet: it is unlikely that an append will soon prove that the log has its newest record.
 */
export const QUIET_MS = 1_000;
/**
 * Time after which records that every check has found are checked only every CHECK_OLD_MS. A crash of NATS loses records that are younger
 * than its sync interval (2 minutes by default); only a restored backup may lack older ones.
 */
export const CHECK_OFTEN_MS = 10 * 60_000;
export const CHECK_OLD_MS = 60_000;
/** Records checked concurrently. */
const CHECKS_AT_ONCE_MAX = 16;

type StoredRecordsOptions = {
  facts: Pick<FactLog, 'isLost'>;
  /** `leadership` of the stream of facts to which the shard writes. */
  leadership: () => Promise<string | undefined>;
  /** Raw sequence of the shard's newest input. */
  lastInput: () => Promise<number>;
  /** The previous owner did not release the shard, so it may have stored records that `progress` does not name. */
  hasOwnerDied: boolean;
  /** Monotonic milliseconds. */
  now: () => number;
  /** Called when the log has lost records, so that every input of the shard must be read again. */
  onLost: () => void;
};

/** A task in memory. */
type TaskRecord = {
  /** The newest record of the task that this shard stored. The task's next append proves that the log has it. */
  stored: RecordMark;
  /** Value of `stored` when it was added to the records to be checked, so that it is added only once. */
  listed?: RecordMark;
};

/**
 * The records that a shard has stored, and whether the log still has them.
 *
 * The shard's newest record is checked at startup, before a task is continued from the log, and from time to time. A loss between two
 * checks may spare the record that the first one checked, and a later record of another task then hides the loss from the second check. So
 * the newest record of each task is also checked once the task is quiet. If that record is lost later, the record of the last check is lost
 * as well.
 *
 * No mark names the last records of an owner that died. Their loss can be ruled out only if the stream of facts has had one leader since.
 * Otherwise tasks that such an owner may have continued go on with generations that no client can have received (ADR 144).
 */
export class StoredRecords {
  readonly #options: StoredRecordsOptions;
  readonly #tasks = new Map<string, TaskRecord>();
  #newest: RecordMark | undefined;
  /** `#newest` at the last check that found it. */
  #found: RecordMark | undefined;
  /** Records that no append will confirm, so they must be checked. */
  #unproven: RecordMark[];
  #refoldTo: number | undefined;
  #leapTo: number | undefined;
  /**
   * Identifies the leader that the stream of facts has had since this owner took the shard or, before `begin` has resolved, since the
   * previous owner took it.
   */
  #leadership: string | undefined;
  /** An earlier owner may have stored records that no mark names, and this owner has not yet checked whether the log has lost them. */
  #isInDoubt: boolean;
  /** When this process stored the newest record or, if it has stored none, when it took the shard. */
  #storedAtMs: number;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  readonly #checks = new SharedNext(() => this.#check());

  constructor(
    { newest, refoldTo, leadership, isInDoubt, leapTo = refoldTo, unproven = [] }: Partial<ShardProgress>,
    options: StoredRecordsOptions,
  ) {
    this.#options = options;
    this.#newest = newest;
    this.#unproven = [...unproven];
    this.#refoldTo = refoldTo;
    this.#leapTo = leapTo;
    this.#leadership = leadership;
    this.#isInDoubt = isInDoubt === true || options.hasOwnerDied;
    this.#storedAtMs = options.now();
  }

  /** After a loss: inputs up to this raw sequence are folded again if their facts are gone. */
  get refoldTo(): number | undefined {
    return this.#refoldTo;
  }

  /** A task whose newest record has folded inputs only up to this raw sequence continues at a generation that no client can have received. */
  get leapTo(): number | undefined {
    return this.#leapTo;
  }

  /** `isUnanswered`: an append was still unanswered when the shard stopped, so the log may have stored its record and then lost it. */
  progress(checkpoint: number, isUnanswered: boolean): Omit<ShardProgress, 'checkpoint'> {
    const refoldTo = this.#refoldTo ?? 0;
    const isInDoubt = this.#isInDoubt || isUnanswered;
    const unproven = new Set(this.#unproven);
    // A check may have found that this record is lost, although the newest one is not.
    if (this.#found !== undefined) unproven.add(this.#found);
    for (const { stored } of this.#tasks.values()) unproven.add(stored);
    return {
      ...(this.#newest && { newest: this.#newest }),
      ...(checkpoint < refoldTo && { refoldTo }),
      ...(this.#leadership !== undefined && { leadership: this.#leadership }),
      ...(isInDoubt && { isInDoubt }),
      ...(this.#leapTo !== undefined && { leapTo: this.#leapTo }),
      unproven: [...unproven],
    };
  }

  /** The first check of an owner, before it reads inputs. Calls `onLost` if the log has lost records. */
  async begin(): Promise<void> {
    const { lastInput, onLost } = this.#options;
    const leadership = await this.#options.leadership();
    try {
      await this.#check();
    } catch (error) {
      if (!(error instanceof HistoryLost)) throw error;
      const lastSeq = await lastInput();
      [this.#newest, this.#unproven] = [undefined, []];
      [this.#refoldTo, this.#leapTo] = [lastSeq, lastSeq];
      // This happens in the same step, because the lease must not name a checkpoint without the marks that make it valid.
      onLost();
    }
    if (this.#isInDoubt && (leadership === undefined || leadership !== this.#leadership)) this.#leapTo = await lastInput();
    [this.#leadership, this.#isInDoubt] = [leadership, false];
  }

  /** Takes a record that the log has acknowledged. */
  add(stored: RecordMark): void {
    const taskId = taskOfFactsId(stored.id);
    const task = this.#tasks.get(taskId);
    if (task === undefined) this.#tasks.set(taskId, { stored });
    else task.stored = stored;
    const before = this.#newest;
    if (before !== undefined && before.seq >= stored.seq) return;
    this.#newest = stored;
    this.#storedAtMs = this.#options.now();
    if (before === undefined) return;
    const taskBefore = taskOfFactsId(before.id);
    if (taskBefore !== taskId && this.#tasks.get(taskBefore)?.stored.id !== before.id) this.#unproven.push(before);
  }

  /**
   * Takes a record that the index names and that the log may not have. The last records of an owner that died may not be named in its
   * lease. The index proves their loss if the log ends before this record or has another record in its place. Inputs are read again for
   * that only once, because the index keeps the sequence of a task that does not come back.
   */
  addIndexed(taskId: string, seq: number): void {
    if (this.#refoldTo === undefined) this.#unproven.push({ seq, id: `${taskId}:` });
  }

  /** Adds the newest records of quiet tasks to the records to be checked, each of them once. */
  addQuiet(lastInputAt: (taskId: string) => number | undefined): void {
    const now = this.#options.now();
    for (const [taskId, task] of this.#tasks) {
      const inputAt = lastInputAt(taskId);
      if (task.stored === task.listed || inputAt === undefined || now - inputAt < QUIET_MS) continue;
      task.listed = task.stored;
      this.#unproven.push(task.stored);
    }
  }

  /** The task leaves memory. */
  release(taskId: string): void {
    const task = this.#tasks.get(taskId);
    this.#tasks.delete(taskId);
    if (task !== undefined && task.stored !== task.listed) this.#unproven.push(task.stored);
  }

  /** With hundreds of idle shards the checks would cost more than everything else that the shards do. */
  isCheckDue(): boolean {
    const nowMs = this.#options.now();
    const isOld = this.#unproven.length === 0 && nowMs - this.#storedAtMs >= CHECK_OFTEN_MS;
    if (isOld && nowMs - this.#checkedAtMs < CHECK_OLD_MS) return false;
    this.#checkedAtMs = nowMs;
    return true;
  }

  /** Rejects with HistoryLost if the log has lost a record. Concurrent calls share the next check. */
  check(): Promise<void> {
    return this.#checks.next();
  }

  async #check(): Promise<void> {
    const newest = this.#newest;
    const marks = [...new Set([...this.#unproven, this.#found, newest])].filter(mark => mark !== undefined);
    const { length } = this.#unproven;
    for (let first = 0; first < marks.length; first += CHECKS_AT_ONCE_MAX) {
      const checks = marks.slice(first, first + CHECKS_AT_ONCE_MAX).map(mark => this.#options.facts.isLost(mark));
      if ((await Promise.all(checks)).includes(true)) throw new HistoryLost('the log lost records that it had acknowledged');
    }
    this.#unproven.splice(0, length);
    this.#found = newest;
  }
}
