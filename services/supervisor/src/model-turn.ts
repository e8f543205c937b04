import { isInterrupted, type Message } from '@hopline/a2a';
import type { ChatModel, Step, StepEvent } from '@hopline/chat-model';
import { ModelError } from '@hopline/chat-model/model-error';
import { type CallEnded, type StatusInput, titleCase, type Work } from '@hopline/events';
import { Superseded } from '@hopline/log';
import { CALLS_MAX, SUPERVISOR } from '@hopline/task';
import { AgentCalls, type CallMore } from './agent-calls.ts';
import { agentTools, finishTool } from './agent-tools.ts';
import { conversation, readOf } from './model-conversation.ts';
import { supervisorPrompt } from './model-prompt.ts';
import { type ChosenCall, chooseCalls, type ModelStep, modelStepOf } from './model-step.ts';
import { StepLanes } from './step-lanes.ts';
import { completedWithout, failure, outcomeOf, resultArtifact } from './turn-outcome.ts';
import type { TurnContext, TurnRunner } from './turn-runner.ts';
import { resumedCallId } from './turn-view.ts';
import { ViewWaits } from './view-waits.ts';

export type ModelSettings = {
  model: ChatModel;
  /** Times the model is asked for one message. */
  stepsMax: number;
  /** The model concludes with a summary, unless `metadata.summary` of the message says otherwise. */
  sumsUp: boolean;
  /** A call whose agent has not lived for this long is given up, milliseconds. */
  agentGoneMs: number;
};

/** Text and arguments of one step, UTF-16 units: what is recorded of it stays below the log's bound on a step. */
const STEP_UNITS_MAX = 64 * 1024;

/** How often a call's agent is looked for, milliseconds. */
const GONE_CHECK_MS = 1_000;

type AgentCall = Extract<ChosenCall, { call: string }>;

/**
 * Profile `caipe`, conducted by a model: its plan and its own words stream through, it calls agents, reads what they said, and goes on until it calls no more. Every step is recorded before
 * anything follows from it; a supervisor that takes over goes on from the record, and asks the model only for what is not there.
 */
export class ModelTurn implements TurnRunner {
  readonly #context: TurnContext;
  readonly #settings: ModelSettings;
  readonly #calls: AgentCalls;
  readonly #waits: ViewWaits;
  #begun = false;

  constructor(context: TurnContext, settings: ModelSettings) {
    this.#context = context;
    this.#settings = settings;
    this.#calls = new AgentCalls(context);
    this.#waits = new ViewWaits(context.signal);
  }

  async advance(): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      // Beside the log, not in its way: while the model speaks, its words come back as facts, and a cancel must be seen.
      this.#conduct().catch(error => this.#context.signal.aborted || this.#context.fail(error));
    }
    this.#waits.look();
  }

  async #conduct(): Promise<void> {
    const { writer, work, attempt } = this.#context;
    this.#calls.begin();
    // What a supervisor before this one has said may still be on its way into the log. Inputs of a lower attempt are dropped behind one of a higher: once this mark stands
    // there, everything of the dead one does too, or never will.
    if (attempt > 1) await this.#record(`taken-over-${work.turn}-${attempt}`, null);
    try {
      if (await this.#goOn()) await this.#finish();
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      writer.add(failure(this.#failureId(), error.message, { retryable: error.retryable }));
    }
    await writer.flush();
  }

  /** Takes the conversation to its end. Returns false when the turn has ended otherwise: it waits for the client, or has failed. */
  async #goOn(): Promise<boolean> {
    const { view, work, writer } = this.#context;
    const { stepsMax } = this.#settings;
    const resumed = view.waiting.map(({ agent, resume }, index) => this.#run(resumedCallId(work.turn, index), agent, { resume }));
    await Promise.all(resumed);
    const steps: ModelStep[] = [];
    for (let number = 1; number <= stepsMax; number += 1) {
      if (this.#asksClient()) return false;
      const recorded = this.#recorded(number);
      if (recorded?.turn === work.turn) new StepLanes(this.#context, String(number)).complete(recorded);
      const step = recorded ?? (await this.#ask(number, steps));
      steps.push(step);
      await Promise.all(step.calls.map(chosen => 'call' in chosen && this.#call(chosen)));
      if (step.calls.length === 0 || step.calls.some(chosen => 'finish' in chosen)) return !this.#asksClient();
    }
    writer.add(failure(this.#failureId(), `the model wanted more than ${stepsMax} steps`));
    return false;
  }

  #recorded(number: number): ModelStep | undefined {
    return modelStepOf(this.#context.view.steps.get(String(number)));
  }

  /** Asks the model, streams what it says, and returns the step that stands in the log. */
  async #ask(number: number, steps: readonly ModelStep[]): Promise<ModelStep> {
    const { view, work, displayName, trace, signal } = this.#context;
    const agents = await this.#context.agents();
    const hasCalled = steps.some(({ calls }) => calls.some(chosen => 'call' in chosen));
    const system = supervisorPrompt(displayName, this.#sumsUp());
    const lanes = new StepLanes(this.#context, String(number));
    const asked = this.#settings.model.step({
      messages: conversation(system, await this.#context.history(view.begunIn), view, steps),
      tools: [...agentTools(agents), ...(hasCalled ? [finishTool] : [])],
      unitsMax: STEP_UNITS_MAX,
      trace: trace(),
      signal,
    });
    const said = await this.#stream(asked, lanes);
    const callId = (index: number) => `call-${work.turn}-${number}-${index}`;
    const chosen = chooseCalls(said, agents, callId, CALLS_MAX - view.calls.length);
    const plan = hasCalled || lanes.hasPlan ? undefined : planOf(chosen);
    const read = readOf(steps.at(-1), view);
    const step: ModelStep = { turn: work.turn, text: said.text, ...(plan !== undefined && { plan }), calls: chosen, read };
    // Before its lanes close: a closed one could not be replaced by whoever asked again.
    await this.#record(String(number), step);
    lanes.complete(step);
    return step;
  }

  async #stream(asked: AsyncGenerator<StepEvent, Step>, lanes: StepLanes): Promise<Step> {
    const { writer } = this.#context;
    try {
      for (;;) {
        const { done, value } = await asked.next();
        if (done) {
          lanes.end();
          return value;
        }
        if (value.type === 'text') lanes.say(value.text);
        if (value.type === 'restart') lanes.restart();
        await writer.ready();
      }
    } finally {
      await asked.return(undefined as never);
    }
  }

  /** Store before work: what follows from a record waits until it stands in the log. */
  async #record(step: string, said: unknown): Promise<void> {
    const { writer, view } = this.#context;
    writer.add({ kind: 'step', step, payload: said });
    await this.#until(() => view.steps.has(step));
  }

  /** A call of the turn before is over, or goes on under another id. */
  async #call(chosen: AgentCall): Promise<void> {
    const { work } = this.#context;
    if (!chosen.call.startsWith(`call-${work.turn}-`)) return;
    await this.#run(chosen.call, chosen.agent, { message: requestOf(chosen, work) });
  }

  /** Begins a call, unless it is over, and waits for its end. */
  async #run(call: string, agent: string, more: CallMore): Promise<void> {
    const { view } = this.#context;
    if (view.ended(call) === undefined) {
      await this.#calls.start(call, agent, more);
      const stop = this.#giveUpWhenGone(call, agent);
      await this.#until(() => view.ended(call) !== undefined).finally(stop);
    }
    const ended = view.ended(call);
    if (ended !== undefined && !isInterrupted(ended.state)) this.#calls.noticeEnd(call, ended);
  }

  /** An agent that has left would be waited for until the end of time. One that comes back goes on, with a new attempt. */
  #giveUpWhenGone(call: string, agent: string): () => void {
    const { isLive, writer, view } = this.#context;
    const { agentGoneMs } = this.#settings;
    let livedAt = performance.now();
    const timer = setInterval(() => {
      const now = performance.now();
      if (isLive(agent)) livedAt = now;
      if (now - livedAt < agentGoneMs) return;
      clearInterval(timer);
      // Its wait for credentials is over, too.
      if (view.needsCredentials(call)) writer.add({ kind: 'status', state: 'TASK_STATE_WORKING' });
      writer.add({ kind: 'ended', call, state: 'TASK_STATE_FAILED', reason: 'the agent is gone', retryable: true });
    }, GONE_CHECK_MS);
    return () => clearInterval(timer);
  }

  /** An agent's question becomes the task's. */
  #asksClient(): boolean {
    const { view, writer, work } = this.#context;
    const asking = view.calls.flatMap(call => view.ended(call) ?? []).find(({ state }) => isInterrupted(state));
    if (asking === undefined) return false;
    const { state, agent, message } = asking;
    const parts = [{ text: `${titleCase(agent)} needs input.` }];
    const question = message ?? { messageId: `${work.turn}/asks-${work.taskId}`, role: 'ROLE_AGENT' as const, parts };
    writer.add({ kind: 'status', state, message: question });
    return true;
  }

  async #finish(): Promise<void> {
    const { view, writer, work, displayName } = this.#context;
    // What the supervisor itself has said last must be in the log, to be part of the result.
    await this.#record(`said-${work.turn}-${this.#context.attempt}`, null);
    const lane = `${work.turn}/result`;
    // What is not forwarded is for the model; a model that makes nothing of it must not leave the client without an answer.
    const text = view.answerText() || view.heldText();
    if (!view.isShown(lane)) for (const piece of resultArtifact(lane, displayName, text)) writer.add(piece);
    writer.add(this.#outcome());
  }

  /** The model decides what a failure means, as long as it says something itself. */
  #outcome(): StatusInput {
    const { view } = this.#context;
    const ends = view.calls.flatMap(call => view.ended(call) ?? []);
    const failed = ends.filter(({ state }) => state !== 'TASK_STATE_COMPLETED');
    const hasOwn = view.ownText() !== '';
    if (ends.length === 0 && !hasOwn) return failure(this.#failureId(), 'the model said nothing', { retryable: true });
    if (failed.length === ends.length && !hasOwn) return outcomeOf(ends, this.#failureId());
    const isMadeGood = ({ agent }: CallEnded) => ends.some(end => end.agent === agent && end.state === 'TASK_STATE_COMPLETED');
    return completedWithout(failed.filter(end => !isMadeGood(end)));
  }

  #sumsUp(): boolean {
    const { message, metadata } = this.#context.work;
    const asked = message.metadata?.summary ?? metadata?.summary;
    return typeof asked === 'boolean' ? asked : this.#settings.sumsUp;
  }

  /** Waits for the log. A newer attempt of the same work conducts the turn from its first word on. */
  #until(condition: () => boolean): Promise<void> {
    const { view, attempt } = this.#context;
    return this.#waits.until(() => {
      if ((view.aggregate?.producers[SUPERVISOR]?.attempt ?? 0) > attempt) throw new Superseded();
      return condition();
    });
  }

  #failureId(): string {
    const { work } = this.#context;
    return `${work.turn}/failed-${work.taskId}`;
  }
}

/** The model's request, with the files and data of the client's message. */
function requestOf({ call, args, skill }: AgentCall, { taskId, message }: Work): Message {
  const others = message.parts.filter(part => part.text === undefined);
  const metadata = skill === undefined ? {} : { metadata: { skill } };
  return { messageId: `${taskId}-${call}`, role: 'ROLE_USER', parts: [{ text: String(args.request) }, ...others], ...metadata };
}

/** The plan of a model that calls without having told one (S0-11). */
function planOf(chosen: readonly ChosenCall[]): string | undefined {
  const agents = chosen.flatMap(call => ('call' in call ? [call.agent] : []));
  if (agents.length === 0) return undefined;
  const lines = agents.map((agent, index) => `${index + 1}. ${titleCase(agent)}\n`);
  return `⟦**🎯 Execution Plan**\n${lines.join('')}⟧`;
}
