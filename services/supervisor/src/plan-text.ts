const BEGIN = '⟦';
const END = '⟧';

/** A run of a model's text: its plan with both markers, or its own words. */
export type TextRun = { kind: 'plan' | 'own'; text: string };

/**
 * Tells the plan in what a model says, between the first ⟦ and the first ⟧ after it, from its own words. White space around the plan belongs to neither: it is layout, and an answer
 * that is nothing else must not exist. Everything else passes unchanged, token by token, also later markers.
 */
export class PlanText {
  #where: 'before' | 'plan' | 'after' | 'words' = 'before';
  #held = '';
  #hasPlan = false;

  get hasPlan(): boolean {
    return this.#hasPlan;
  }

  take(token: string): TextRun[] {
    const runs: TextRun[] = [];
    let rest = token;
    while (rest !== '') rest = this.#where === 'plan' ? this.#inPlan(rest, runs) : this.#outside(rest, runs);
    return runs;
  }

  /** The step is over: a plan that was not closed is. */
  end(): TextRun[] {
    if (this.#where !== 'plan') return [];
    this.#where = 'after';
    return [{ kind: 'plan', text: END }];
  }

  #inPlan(text: string, runs: TextRun[]): string {
    const at = text.indexOf(END);
    const cut = at < 0 ? text.length : at + END.length;
    runs.push({ kind: 'plan', text: text.slice(0, cut) });
    if (at >= 0) this.#where = 'after';
    return text.slice(cut);
  }

  #outside(text: string, runs: TextRun[]): string {
    const begin = this.#hasPlan ? -1 : text.indexOf(BEGIN);
    this.#own(begin < 0 ? text : text.slice(0, begin), runs);
    if (begin < 0) return '';
    this.#held = '';
    this.#hasPlan = true;
    this.#where = 'plan';
    runs.push({ kind: 'plan', text: BEGIN });
    return text.slice(begin + BEGIN.length);
  }

  #own(text: string, runs: TextRun[]): void {
    if (text === '') return;
    const said = this.#held + text;
    if (this.#where !== 'words' && said.trim() === '') {
      this.#held = said;
      return;
    }
    this.#held = '';
    this.#where = 'words';
    runs.push({ kind: 'own', text: said });
  }
}

/** Both texts of a whole step. */
export function splitPlan(text: string): { plan: string; own: string } {
  const reader = new PlanText();
  const split = { plan: '', own: '' };
  for (const run of [...reader.take(text), ...reader.end()]) split[run.kind] += run.text;
  return split;
}
