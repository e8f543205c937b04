import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Fact } from '@hopline/events';
import type { Log } from '@hopline/log';
import { type Checkpoint, CheckpointMismatch, replayFacts } from '@hopline/replay';

/** A transaction ends with the batch that reaches this many records. It includes the checkpoint, so that no record counts twice. */
const TRANSACTION_RECORDS = 1_000;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, context TEXT, role TEXT, tenant TEXT, state TEXT, reason TEXT,
    started_ms INTEGER, changed_ms INTEGER, first_text_ms INTEGER, turns INTEGER DEFAULT 1, frames INTEGER DEFAULT 0, tokens INTEGER DEFAULT 0
  );
  CREATE TABLE IF NOT EXISTS calls (task TEXT, call TEXT, agent TEXT, started_ms INTEGER, ended_ms INTEGER, state TEXT, PRIMARY KEY (task, call));
  CREATE TABLE IF NOT EXISTS checkpoint (id INTEGER PRIMARY KEY CHECK (id = 1), json TEXT);
`;

type Statements = Record<keyof typeof STATEMENTS, StatementSync>;

/** A projection of the log into SQLite: one row for each task and each call, without their texts. */
export class TaskTable {
  readonly #db: DatabaseSync;
  readonly #statements: Statements;

  constructor(path: string) {
    this.#db = new DatabaseSync(path);
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; ${SCHEMA}`);
    const prepared = Object.entries(STATEMENTS).map(([name, sql]) => [name, this.#db.prepare(sql)]);
    this.#statements = Object.fromEntries(prepared) as Statements;
  }

  /**
   * Applies the records stored since the last run. Resolves with the number of records and tokens. Begins again if the log has lost some of the
   * records of earlier runs.
   */
  async update(log: Pick<Log, 'layouts' | 'shards' | 'facts'>): Promise<{ records: number; tokens: number }> {
    try {
      return await this.#apply(log);
    } catch (error) {
      if (!(error instanceof CheckpointMismatch)) throw error;
      this.#db.exec('BEGIN; DELETE FROM tasks; DELETE FROM calls; DELETE FROM checkpoint; COMMIT');
      return this.#apply(log);
    }
  }

  async #apply(log: Pick<Log, 'layouts' | 'shards' | 'facts'>): Promise<{ records: number; tokens: number }> {
    const replay = replayFacts(log, { ...this.#after(), shardsAtOnce: log.shards });
    const done = { records: 0, tokens: 0 };
    let open = false;
    const commit = () => {
      if (!open) return;
      this.#statements.checkpoint.run(JSON.stringify(replay.checkpoint));
      this.#db.exec('COMMIT');
      open = false;
    };
    try {
      let uncommitted = 0;
      for await (const records of replay.batches()) {
        if (!open) this.#db.exec('BEGIN');
        open = true;
        for (const { taskId, facts } of records) for (const fact of facts) done.tokens += this.#applyFact(taskId, fact);
        done.records += records.length;
        uncommitted += records.length;
        if (uncommitted < TRANSACTION_RECORDS) continue;
        commit();
        uncommitted = 0;
      }
      commit();
    } finally {
      if (open) this.#db.exec('ROLLBACK');
    }
    return done;
  }

  query(sql: string): unknown[] {
    return this.#db.prepare(sql).all();
  }

  close(): void {
    this.#db.close();
  }

  #after(): { after?: Checkpoint } {
    const row = this.#db.prepare('SELECT json FROM checkpoint').get() as { json: string } | undefined;
    return row === undefined ? {} : { after: JSON.parse(row.json) as Checkpoint };
  }

  /** The number of tokens in the fact. */
  #applyFact(task: string, fact: Fact): number {
    const { created, turn, state, text, frame, callStarted, callEnded } = this.#statements;
    switch (fact.kind) {
      case 'task.created':
        created.run(
          task,
          fact.event.task.contextId,
          fact.role,
          fact.owner?.tenant ?? null,
          'TASK_STATE_SUBMITTED',
          fact.at,
          fact.at,
        );
        return 0;
      case 'message.received':
        turn.run(fact.turn, fact.at, task);
        return 0;
      case 'status.changed': {
        const { status, metadata } = fact.event.statusUpdate;
        const reason = typeof metadata?.reason === 'string' ? metadata.reason : null;
        state.run(status.state, reason, fact.at, task);
        return 0;
      }
      case 'artifact.updated':
        if (fact.chunk === undefined) frame.run(fact.at, task);
        else text.run(fact.chunk.count, fact.at, fact.at, task);
        return fact.chunk?.count ?? 0;
      case 'call.started':
        callStarted.run(task, fact.call, fact.agent, fact.at);
        return 0;
      case 'call.ended':
        callEnded.run(fact.at, fact.state, task, fact.call);
        return 0;
      default:
        return 0;
    }
  }
}

const STATEMENTS = {
  created:
    'INSERT OR REPLACE INTO tasks (id, context, role, tenant, state, started_ms, changed_ms, frames) VALUES (?, ?, ?, ?, ?, ?, ?, 1)',
  turn: 'UPDATE tasks SET turns = ?, changed_ms = ? WHERE id = ?',
  state: 'UPDATE tasks SET state = ?, reason = coalesce(?, reason), changed_ms = ?, frames = frames + 1 WHERE id = ?',
  text: 'UPDATE tasks SET tokens = tokens + ?, first_text_ms = coalesce(first_text_ms, ? - started_ms), changed_ms = ?, frames = frames + 1 WHERE id = ?',
  frame: 'UPDATE tasks SET changed_ms = ?, frames = frames + 1 WHERE id = ?',
  callStarted: 'INSERT OR REPLACE INTO calls (task, call, agent, started_ms) VALUES (?, ?, ?, ?)',
  callEnded: 'UPDATE calls SET ended_ms = ?, state = ? WHERE task = ? AND call = ?',
  checkpoint: 'INSERT INTO checkpoint (id, json) VALUES (1, ?) ON CONFLICT (id) DO UPDATE SET json = excluded.json',
} as const;
