/** Milliseconds between two noted times, and thus the largest error of an age. */
const NOTE_MS = 1_000;
/** Noted times. If all are needed, every second one is forgotten, which doubles the error. */
export const NOTES_MAX = 1_024;

/** When the inputs of a shard were stored, without a time for each: `storedAt` never falls with the sequence. */
export class ReadTimes {
  #notes: { seq: number; storedAt: number }[] = [];

  /** Called for each input in the order of the shard. */
  add(seq: number, storedAt: number): void {
    const last = this.#notes.at(-1);
    if (last !== undefined && storedAt - last.storedAt < NOTE_MS) return;
    if (this.#notes.length === NOTES_MAX) this.#notes = this.#notes.filter((_note, index) => index % 2 === 0);
    this.#notes.push({ seq, storedAt });
  }

  /** When the input was stored, or at most NOTE_MS earlier. Forgets what is before it. */
  of(seq: number): number | undefined {
    const index = this.#notes.findLastIndex(note => note.seq <= seq);
    if (index > 0) this.#notes.splice(0, index);
    return this.#notes[0]?.storedAt;
  }
}
