/** The attempt did not end the turn, but another one may. */
export class AttemptFailed extends Error {
  override readonly name: string = 'AttemptFailed';
  /** The cause as a closed word, for spans. */
  readonly word: string;

  constructor(reason: string, word: string) {
    super(reason);
    this.word = word;
  }
}

/** The process that runs an agent's code has ended in the middle of a turn. The turn runs again, as after the death of a sub-agent. */
export class AgentLost extends AttemptFailed {
  override readonly name = 'AgentLost';
}
