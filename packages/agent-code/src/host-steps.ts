import { AgentMisuse, type BegunStep, type StepOutcome, type TurnSteps } from '@hopline/agent';
import type { FromHost, ToHost } from './protocol.ts';
import { fromThrown } from './thrown.ts';

type Asked = Omit<Extract<FromHost, { k: 'step-begin' }>, 'id'> | Omit<Extract<FromHost, { k: 'step-end' }>, 'id'>;

/** The steps of one turn, for which the host of the code asks the sub-agent, one question at a time. */
export class HostSteps implements TurnSteps {
  readonly #send: (frame: Asked) => void;
  #waiting: { resolve: (begun: BegunStep | undefined) => void; reject: (error: unknown) => void } | undefined;
  #isClosed = false;

  constructor(send: (frame: Asked) => void) {
    this.#send = send;
  }

  async begin(step: string): Promise<BegunStep> {
    return (await this.#ask({ k: 'step-begin', step })) as BegunStep;
  }

  async end(outcome: StepOutcome): Promise<void> {
    await this.#ask({ k: 'step-end', outcome });
  }

  answered({ begun, error }: Extract<ToHost, { k: 'step' }>): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (error === undefined) waiting?.resolve(begun);
    else waiting?.reject(fromThrown(error));
  }

  /** The turn is over: no answer follows. */
  close(): void {
    this.#isClosed = true;
    this.#waiting?.reject(OVER);
    this.#waiting = undefined;
  }

  async #ask(frame: Asked): Promise<BegunStep | undefined> {
    if (this.#isClosed) throw OVER;
    if (this.#waiting !== undefined) throw new AgentMisuse('two steps run at once; run steps one after another');
    const { promise, resolve, reject } = Promise.withResolvers<BegunStep | undefined>();
    this.#waiting = { resolve, reject };
    this.#send(frame);
    return await promise;
  }
}

const OVER = new Error('the turn is over');
