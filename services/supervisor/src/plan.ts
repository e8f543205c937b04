import { type ArtifactInput, type LaneArtifact, titleCase } from '@hopline/events';

/** Clients find the plan between these markers (S0-10). */
const BEGIN = '⟦';
const END = '⟧';

/** The complete plan: the same artifact, replaced and closed, so that a folded task has only one plan (C-3). */
export function completePlan(lane: string, artifact: LaneArtifact, text: string): ArtifactInput {
  return { kind: 'artifact', lane, artifact, parts: [{ text }], append: false, last: true };
}

/** A plan's tokens with the markers around them. */
export async function* marked(tokens: AsyncIterable<string> | Iterable<string>): AsyncGenerator<string> {
  yield BEGIN;
  yield* tokens;
  yield END;
}

/** A plan without its markers, for clients that do not look for it. */
export function unmarked(plan: string): string {
  return plan.replace(BEGIN, '').replace(END, '');
}

/** The plan if a model calls agents without writing one (S0-11). */
export function planOfCalls(agents: readonly string[]): string | undefined {
  if (agents.length === 0) return undefined;
  const lines = agents.map((agent, index) => `${index + 1}. ${titleCase(agent)}\n`);
  return `${BEGIN}**🎯 Execution Plan**\n${lines.join('')}${END}`;
}

/** A run of a model's text that belongs either to its plan (with both markers) or to its own words. */
export type MarkedText = { kind: 'plan' | 'prose'; text: string };

/**
 * Separates the plan in a model's text, from the first ⟦ to the first ⟧ after it, from the model's own words. White space around the plan
 * belongs to neither, because an answer must not consist only of layout. All other text, including later markers, is passed on unchanged,
 * token by token.
 */
export class PlanParser {
  #position: 'before' | 'plan' | 'after' | 'words' = 'before';
  /** White space that becomes part of the words if words follow. */
  #pending = '';
  #hasPlan = false;

  get hasPlan(): boolean {
    return this.#hasPlan;
  }

  take(token: string): MarkedText[] {
    const runs: MarkedText[] = [];
    let rest = token;
    while (rest !== '') rest = this.#position === 'plan' ? this.#inPlan(rest, runs) : this.#outside(rest, runs);
    return runs;
  }

  /** Ends the step: closes a plan that is still open. */
  end(): MarkedText[] {
    if (this.#position !== 'plan') return [];
    this.#position = 'after';
    return [{ kind: 'plan', text: END }];
  }

  #inPlan(text: string, runs: MarkedText[]): string {
    const at = text.indexOf(END);
    const length = at < 0 ? text.length : at + END.length;
    runs.push({ kind: 'plan', text: text.slice(0, length) });
    if (at >= 0) this.#position = 'after';
    return text.slice(length);
  }

  #outside(text: string, runs: MarkedText[]): string {
    const begin = this.#hasPlan ? -1 : text.indexOf(BEGIN);
    this.#prose(begin < 0 ? text : text.slice(0, begin), runs);
    if (begin < 0) return '';
    this.#pending = '';
    this.#hasPlan = true;
    this.#position = 'plan';
    runs.push({ kind: 'plan', text: BEGIN });
    return text.slice(begin + BEGIN.length);
  }

  #prose(text: string, runs: MarkedText[]): void {
    if (text === '') return;
    const words = this.#pending + text;
    // Pending text consists of white space. Checking it again with each token would be quadratic in its length.
    if (this.#position !== 'words' && text.trim() === '') {
      this.#pending = words;
      return;
    }
    this.#pending = '';
    this.#position = 'words';
    runs.push({ kind: 'prose', text: words });
  }
}

/** Plan and words of a whole step. */
export function splitPlan(text: string): { plan: string; prose: string } {
  const parser = new PlanParser();
  const split = { plan: '', prose: '' };
  for (const run of [...parser.take(text), ...parser.end()]) split[run.kind] += run.text;
  return split;
}
