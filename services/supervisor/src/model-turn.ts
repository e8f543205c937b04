import { isInterrupted, type Message, textOf } from '@hopline/a2a';
import type { ChatModel, Step, StepEvent } from '@hopline/chat-model';
import { ModelError } from '@hopline/chat-model/model-error';
import { type CallEnded, type StatusInput, titleCase, type Work } from '@hopline/events';
import { requireNewest } from '@hopline/log';
import { answerArtifact, laneArtifact } from '@hopline/profiles';
import { SUPERVISOR, TURN_CALLS_MAX } from '@hopline/task';
import { AgentCalls, type CallOptions } from './agent-calls.ts';
import { agentTools, finishTool } from './agent-tools.ts';
import { conversation, readOf } from './model-conversation.ts';
import { supervisorPrompt } from './model-prompt.ts';
import { type ChosenCall, chooseCalls, type ModelStep, modelStepOf } from './model-step.ts';
import { planOfCalls } from './plan.ts';
import { StepLanes } from './step-lanes.ts';
import { addResult, completedWithout, failure, outcomeOf, withUsage } from './turn-outcome.ts';
import type { ConductingContext, TurnRunner } from './turn-runner.ts';
import { continuingCallId } from './turn-view.ts';
import { ViewWaits } from './view-waits.ts';

export type ModelSettings = {
  model: ChatModel;
  /** Requests to the model for one message. */
  stepsMax: number;
  /** Whether the model ends with a summary. `metadata.summary` of the message takes precedence. */
  sumsUp: boolean;
};

/** UTF-16 units of the text and arguments of one step, so that the recorded step stays below the log's bound. */
const REPLY_UNITS_MAX = 64 * 1024;

type AgentCall = Extract<ChosenCall, { call: string }>;

/**
 * A turn conducted by a model: its plan and its own words are streamed, it calls agents, reads their answers, and continues until it makes no
 * more calls. Every step is recorded before its effects; a supervisor that takes over requests only the steps that are not recorded.
 */
export class ModelTurn implements TurnRunner {
  readonly #context: ConductingContext;
  readonly #settings: ModelSettings;
  readonly #calls: AgentCalls;
  readonly #waits: ViewWaits;
  #begun = false;

  constructor(context: ConductingContext, settings: ModelSettings) {
    this.#context = context;
    this.#settings = settings;
    this.#calls = new AgentCalls(context);
    this.#waits = new ViewWaits(context.signal);
  }

  async advance(): Promise<void> {
    if (!this.#begun) {
      this.#begun = true;
      // Runs concurrently with `advance`, because while the model streams, its text comes back as facts, and a cancel must be noticed.
      this.#conduct().catch(error => this.#context.signal.aborted || this.#context.fail(error));
    }
    this.#waits.check();
  }

  async #conduct(): Promise<void> {
    const { writer, work, attempt } = this.#context;
    this.#calls.begin();
    // Inputs of an earlier supervisor may still be on their way into the log. After an input of a higher attempt they are rejected. So once
    // this mark is recorded, an input of the earlier supervisor either is recorded already or never will be.
    if (attempt > 1) await this.#record(`taken-over-${work.turn}-${attempt}`, null);
    try {
      if (await this.#converse()) await this.#finish();
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      writer.add(this.#withUsage(failure(this.#failureId(), error.message, { retryable: error.retryable })));
    }
    await writer.flush();
  }

  /** Runs the conversation to its end. Returns false if the turn ends in another way: it waits for the client, or has failed. */
  async #converse(): Promise<boolean> {
    const { view, work, writer } = this.#context;
    const { stepsMax } = this.#settings;
    const resumed = view.waiting.map(({ agent, call: _call, ...options }, index) =>
      this.#run(continuingCallId(work.turn, index), agent, options),
    );
    await Promise.all(resumed);
    const steps: ModelStep[] = [];
    for (let number = 1; number <= stepsMax; number += 1) {
      if (this.#passQuestion()) return false;
      const recorded = this.#recorded(number);
      if (recorded?.turn === work.turn) new StepLanes(this.#context, String(number)).complete(recorded);
      const step = recorded ?? (await this.#requestStep(number, steps));
      steps.push(step);
      await Promise.all(step.calls.map(chosen => 'call' in chosen && this.#call(chosen)));
      if (step.calls.length === 0 || step.calls.some(chosen => 'finish' in chosen)) return !this.#passQuestion();
    }
    writer.add(this.#withUsage(failure(this.#failureId(), `the model did not finish within ${stepsMax} steps`)));
    return false;
  }

  #recorded(number: number): ModelStep | undefined {
    return modelStepOf(this.#context.view.steps.get(String(number)));
  }

  /** Requests a step of the model, streams its text, and returns the step as recorded. */
  async #requestStep(number: number, steps: readonly ModelStep[]): Promise<ModelStep> {
    const { view, work, displayName, trace, signal } = this.#context;
    const agents = await this.#context.agents();
    const hasCalled = steps.some(({ calls }) => calls.some(chosen => 'call' in chosen));
    const system = supervisorPrompt(displayName, this.#sumsUp());
    const lanes = new StepLanes(this.#context, String(number));
    const events = this.#settings.model.step({
      messages: conversation(system, await this.#context.history(view.requestTurn), view, steps),
      tools: [
        ...agentTools(agents, textOf(view.messageOf(view.requestTurn)?.parts ?? work.message.parts)),
        ...(hasCalled ? [finishTool] : []),
      ],
      unitsMax: REPLY_UNITS_MAX,
      trace: trace(),
      signal,
    });
    const reply = await this.#stream(events, lanes);
    const callId = (index: number) => `call-${work.turn}-${number}-${index}`;
    const chosen = chooseCalls(reply, agents, callId, TURN_CALLS_MAX - view.calls.length);
    const plan =
      hasCalled || lanes.hasPlan ? undefined : planOfCalls(chosen.flatMap(call => ('call' in call ? [call.agent] : [])));
    const read = readOf(steps.at(-1), view);
    const step: ModelStep = {
      turn: work.turn,
      text: reply.text,
      ...(plan !== undefined && { plan }),
      calls: chosen,
      read,
      ...(reply.usage && { usage: reply.usage }),
    };
    // Records the step before its lanes close, because a supervisor that requests the step again cannot replace a closed lane.
    await this.#record(String(number), step);
    lanes.complete(step);
    return step;
  }

  async #stream(events: AsyncGenerator<readonly StepEvent[], Step>, lanes: StepLanes): Promise<Step> {
    const { writer } = this.#context;
    try {
      for (;;) {
        const { done, value } = await events.next();
        if (done) {
          lanes.end();
          return value;
        }
        for (const event of value) {
          if (event.type === 'text') lanes.token(event.text);
          if (event.type === 'restart') lanes.restart();
          if (!writer.isReady) await writer.ready();
        }
      }
    } finally {
      await events.return(undefined as never);
    }
  }

  /** Records a step before anything follows from it. Resolves when the record is in the log. */
  async #record(step: string, payload: unknown): Promise<void> {
    const { writer, view } = this.#context;
    writer.add({ kind: 'step', step, payload });
    await this.#until(() => view.steps.has(step));
  }

  /** Makes a call, unless a previous turn has made it. Such a call is over, or continues under another id. */
  async #call(chosen: AgentCall): Promise<void> {
    const { work } = this.#context;
    if (!chosen.call.startsWith(`call-${work.turn}-`)) return;
    await this.#run(chosen.call, chosen.agent, { message: requestOf(chosen, work) });
  }

  /** Begins a call unless it is over, and waits for its end. */
  async #run(call: string, agent: string, options: CallOptions): Promise<void> {
    const { view } = this.#context;
    if (view.ended(call) === undefined) {
      await this.#calls.start(call, agent, options);
      await this.#until(() => view.ended(call) !== undefined);
    }
    const ended = view.ended(call);
    if (ended !== undefined && !isInterrupted(ended.state)) this.#calls.noticeEnd(ended);
  }

  /** Turns an agent's question into the task's; returns true if there is one. */
  #passQuestion(): boolean {
    const { view, writer, work } = this.#context;
    const ended = view.ends.find(({ state }) => isInterrupted(state));
    if (ended === undefined) return false;
    const { state, agent, message } = ended;
    const parts = [{ text: `${titleCase(agent)} needs input.` }];
    const question = message ?? { messageId: `${work.turn}/asks-${work.taskId}`, role: 'ROLE_AGENT' as const, parts };
    writer.add(this.#withUsage({ kind: 'status', state, message: question }));
    return true;
  }

  async #finish(): Promise<void> {
    const { view, writer, work, profile, displayName } = this.#context;
    // The supervisor's last words must be in the log to be part of the result.
    await this.#record(`own-text-${work.turn}-${this.#context.attempt}`, null);
    const lane = `${work.turn}/result`;
    // Withheld text is only for the model. If the model adds nothing, however, that text is the answer.
    const streamed = view.answerText();
    const { result } = profile;
    if (result !== undefined)
      await addResult(this.#context, lane, laneArtifact(profile, result, displayName), streamed || view.withheldText());
    // If there is no result artifact, only the text that clients have not received is still to be sent.
    else if (streamed === '' || view.isShown(lane))
      await addResult(this.#context, lane, answerArtifact(profile, displayName, SUPERVISOR), view.withheldText());
    writer.add(this.#withUsage(this.#outcome()));
  }

  /** A failed call does not fail the task if the model itself has answered. */
  #outcome(): StatusInput {
    const { view } = this.#context;
    const { ends } = view;
    const failed = ends.filter(({ state }) => state !== 'TASK_STATE_COMPLETED');
    const hasOwn = view.supervisorText() !== '';
    if (ends.length === 0 && !hasOwn) return failure(this.#failureId(), 'the model returned no text', { retryable: true });
    if (failed.length === ends.length && !hasOwn) return outcomeOf(ends, this.#failureId());
    const isRecovered = ({ agent }: CallEnded) => ends.some(end => end.agent === agent && end.state === 'TASK_STATE_COMPLETED');
    return completedWithout(failed.filter(end => !isRecovered(end)));
  }

  #sumsUp(): boolean {
    const { message, metadata } = this.#context.work;
    const requested = message.metadata?.summary ?? metadata?.summary;
    return typeof requested === 'boolean' ? requested : this.#settings.sumsUp;
  }

  /** Waits for the log. Rejects with Superseded once a newer attempt of the same work has written. */
  #until(condition: () => boolean): Promise<void> {
    const { view, attempt } = this.#context;
    return this.#waits.until(() => {
      if (view.aggregate !== undefined) requireNewest(view.aggregate, { id: SUPERVISOR, attempt });
      return condition();
    });
  }

  /** The tokens of this turn: those of the model's steps plus those of the agents that it called. */
  #withUsage(status: StatusInput): StatusInput {
    const { view, work } = this.#context;
    const steps = [...view.steps.values()].map(modelStepOf).filter(step => step?.turn === work.turn);
    return withUsage(
      status,
      view.ends,
      steps.map(step => step?.usage),
    );
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
