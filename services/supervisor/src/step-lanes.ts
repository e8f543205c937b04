import type { LaneArtifact } from '@hopline/events';
import { answerArtifact, laneArtifact, progressStatus } from '@hopline/profiles';
import { SUPERVISOR } from '@hopline/task';
import type { ModelStep } from './model-step.ts';
import { completePlan, type MarkedText, PlanParser, splitPlan, unmarked } from './plan.ts';
import type { ConductingContext } from './turn-runner.ts';

/**
 * One step of the model as the client sees it: an artifact for the plan with its markers, and one for the supervisor's own words (C-24).
 */
export class StepLanes {
  readonly #context: ConductingContext;
  readonly #lanes: Record<MarkedText['kind'], string>;
  readonly #open = new Set<MarkedText['kind']>();
  #parser = new PlanParser();

  constructor(context: ConductingContext, step: string) {
    this.#context = context;
    const prefix = `${context.work.turn}/step-${step}`;
    // Lane names are in the log, and an attempt of another version must choose the same ones.
    this.#lanes = { plan: `${prefix}/plan`, prose: `${prefix}/own` };
  }

  get hasPlan(): boolean {
    return this.#parser.hasPlan;
  }

  token(token: string): void {
    for (const run of this.#parser.take(token)) this.#write(run);
  }

  end(): void {
    for (const run of this.#parser.end()) this.#write(run);
  }

  /** Call it when the step breaks off: its next text replaces the streamed text. */
  restart(): void {
    this.#parser = new PlanParser();
    for (const kind of this.#open) this.#openLane(kind);
  }

  /**
   * Completes the lanes of a recorded step, however much of it any supervisor has streamed. A closed lane stays. A lane that this
   * supervisor has not written itself is written again, so that the client's view equals the record byte for byte.
   */
  complete(step: Pick<ModelStep, 'text' | 'plan'>): void {
    const { writer, profile, displayName, work, view } = this.#context;
    const { plan: planText, prose } = splitPlan(step.text);
    const plan = step.plan ?? planText;
    if (profile.plan === 'status') {
      const parts = [{ text: unmarked(plan) }];
      if (plan !== '' && !view.isShown(this.#lanes.plan))
        writer.add(progressStatus({ lane: this.#lanes.plan, taskId: work.taskId, parts }));
    } else if (this.#needsClose('plan', plan))
      writer.add(completePlan(this.#lanes.plan, laneArtifact(profile, profile.plan.complete, displayName), plan));
    if (this.#needsClose('prose', prose)) writer.add({ kind: 'close', lane: this.#lanes.prose });
    this.#open.clear();
  }

  /** Whether the lane must be closed now. Text that this supervisor has not written is written first. */
  #needsClose(kind: MarkedText['kind'], text: string): boolean {
    const phase = this.#context.view.aggregate?.lanes[this.#lanes[kind]]?.phase;
    if (this.#open.has(kind)) return true;
    if (phase === 'closed' || (phase === undefined && text === '')) return false;
    this.#openLane(kind);
    if (text !== '') this.#context.writer.token(this.#lanes[kind], text);
    return true;
  }

  #write({ kind, text }: MarkedText): void {
    if (kind === 'plan' && this.#context.profile.plan === 'status') return;
    if (!this.#open.has(kind)) this.#openLane(kind);
    this.#context.writer.token(this.#lanes[kind], text);
  }

  #openLane(kind: MarkedText['kind']): void {
    this.#context.writer.add({ kind: 'open', lane: this.#lanes[kind], artifact: this.#artifact(kind) });
    this.#open.add(kind);
  }

  #artifact(kind: MarkedText['kind']): LaneArtifact {
    const { profile, displayName } = this.#context;
    if (kind === 'plan' && profile.plan !== 'status') return laneArtifact(profile, profile.plan.streaming, displayName);
    return answerArtifact(profile, displayName, SUPERVISOR);
  }
}
