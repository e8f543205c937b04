import type { Fact, Work } from '@hopline/events';
import { type Log, readTask, type StoredFacts } from '@hopline/log';
import { ROOT_AGENT } from '@hopline/task';

/** Collects the remote runs that one producer began in one turn and that may still be running. It reads the task's facts in order. */
export class RemoteRunsOfTurn {
  readonly #producer: string;
  readonly #turn: number;
  #runs: unknown[] = [];
  /** Turn of the facts that are currently read. */
  #readTurn = 1;
  /** True while the agent waits for credentials: the next turn continues its run. */
  #waits = false;

  constructor(producer: string, turn: number) {
    this.#producer = producer;
    this.#turn = turn;
  }

  get open(): readonly unknown[] {
    return this.#runs;
  }

  add(fact: Fact): void {
    if (fact.kind === 'message.received') {
      this.#readTurn = fact.turn;
      if (this.#waits && fact.turn === this.#turn + 1) this.#runs = [];
    }
    if (this.#readTurn !== this.#turn) return;
    if (fact.kind === 'remote-run.started' && fact.producer === this.#producer) this.#runs.push(fact.run);
    else if (fact.kind === 'call.ended' && fact.call === this.#producer && hasEndedItself(fact.state)) this.#runs = [];
    else if (fact.kind === 'status.changed' && (fact.call ?? ROOT_AGENT) === this.#producer) {
      const { state } = fact.event.statusUpdate.status;
      this.#waits = state === 'TASK_STATE_AUTH_REQUIRED';
      if (hasEndedItself(state)) this.#runs = [];
    }
  }
}

/**
 * Whether this is a state that the agent itself reports when its run has ended or waits. Other states may come from the client, a
 * supervisor or a relay.
 */
function hasEndedItself(state: string): boolean {
  return state === 'TASK_STATE_COMPLETED' || state === 'TASK_STATE_INPUT_REQUIRED';
}

/** Reads the task's facts once. */
export async function readRemoteRuns(
  log: Log,
  newest: StoredFacts,
  { call, turn }: Pick<Work, 'call' | 'turn'>,
): Promise<readonly unknown[]> {
  const runs = new RemoteRunsOfTurn(call?.id ?? ROOT_AGENT, turn);
  for await (const { record } of readTask(log.facts, newest)) for (const fact of record.facts) runs.add(fact);
  return runs.open;
}
