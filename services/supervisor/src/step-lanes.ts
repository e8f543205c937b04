import { SUPERVISOR } from '@hopline/task';
import type { ModelStep } from './model-step.ts';
import { answerHeader } from './notices.ts';
import { completeUpdate, PLAN_STREAMING } from './plan-artifact.ts';
import { PlanText, splitPlan, type TextRun } from './plan-text.ts';
import type { TurnContext } from './turn-runner.ts';

/** One step of the model as the client sees it: the plan between its markers, and the supervisor's own words (C-24), each an artifact. */
export class StepLanes {
  readonly #context: TurnContext;
  readonly #lanes: { plan: string; own: string };
  readonly #open = new Set<TextRun['kind']>();
  #reader = new PlanText();

  constructor(context: TurnContext, step: string) {
    this.#context = context;
    const prefix = `${context.work.turn}/step-${step}`;
    this.#lanes = { plan: `${prefix}/plan`, own: `${prefix}/own` };
  }

  get hasPlan(): boolean {
    return this.#reader.hasPlan;
  }

  say(token: string): void {
    for (const run of this.#reader.take(token)) this.#say(run);
  }

  end(): void {
    for (const run of this.#reader.end()) this.#say(run);
  }

  /** The step broke off: what it said is void, and its next words replace it. */
  restart(): void {
    this.#reader = new PlanText();
    for (const kind of this.#open) this.#openLane(kind);
  }

  /**
   * Makes the client's view of a recorded step complete, whoever streamed how much of it: nothing where it is closed already; else it is closed, and said again where this supervisor did not
   * say it. So what stands is what the record has, byte for byte.
   */
  complete(step: Pick<ModelStep, 'text' | 'plan'>): void {
    const { writer } = this.#context;
    const { plan, own } = splitPlan(step.text);
    const { plan: lane } = this.#lanes;
    if (this.#isDue('plan', step.plan ?? plan)) writer.add(completeUpdate(lane, step.plan ?? plan));
    if (this.#isDue('own', own)) writer.add({ kind: 'close', lane: this.#lanes.own });
    this.#open.clear();
  }

  /** Whether the lane must be closed now. What this supervisor has not said itself is said first. */
  #isDue(kind: TextRun['kind'], text: string): boolean {
    const phase = this.#context.view.aggregate?.lanes[this.#lanes[kind]]?.phase;
    if (this.#open.has(kind)) return true;
    if (phase === 'closed' || (phase === undefined && text === '')) return false;
    this.#openLane(kind);
    if (text !== '') this.#context.writer.token(this.#lanes[kind], text);
    return true;
  }

  #say({ kind, text }: TextRun): void {
    if (!this.#open.has(kind)) this.#openLane(kind);
    this.#context.writer.token(this.#lanes[kind], text);
  }

  #openLane(kind: TextRun['kind']): void {
    const { writer, displayName } = this.#context;
    const artifact = kind === 'plan' ? PLAN_STREAMING : answerHeader(displayName, SUPERVISOR);
    writer.add({ kind: 'open', lane: this.#lanes[kind], artifact });
    this.#open.add(kind);
  }
}
