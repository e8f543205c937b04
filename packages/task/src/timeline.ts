import type { Artifact, Task, TimelineEntry } from '@hopline/a2a';
import { type Fact, type FactRecord, isVisible } from '@hopline/events';

/** Generations of an artifact's first event, and of the one that completed it. */
type ArtifactSpan = { start: number; end?: number };

/**
 * Lists what clients saw of a task, for the members `timeline`, `startGeneration` and `endGeneration` of A2A's draft 1.1. Messages of the
 * client are not events here, so an entry for one has the generation of the event before it.
 */
export class TaskTimeline {
  readonly #entries: TimelineEntry[] = [];
  readonly #artifacts = new Map<string, ArtifactSpan>();
  #generation = 0;

  /** Adds the facts of one record. If retention removed the beginning of the log, the timeline begins with the oldest record. */
  add(record: FactRecord): void {
    if (this.#generation === 0 && record.facts[0]?.kind !== 'task.created') this.#beginLate(record);
    for (const fact of record.facts) this.#addFact(fact);
  }

  /** The task with at most the newest `length` entries of its timeline. 0: without the member. */
  addTo(task: Task, length: number): Task {
    const shown = { ...task, ...(task.artifacts && { artifacts: task.artifacts.map(artifact => this.#withSpan(artifact)) }) };
    return length === 0 ? shown : { ...shown, timeline: this.#entries.slice(-length) };
  }

  /** A record that changes no state also shows the state before it. */
  #beginLate({ facts, aggregate: { generation, state, at } }: FactRecord): void {
    this.#generation = generation - facts.filter(isVisible).length;
    if (facts.some(({ kind }) => kind === 'status.changed')) return;
    this.#entries.push({ status: { state, timestamp: new Date(at).toISOString() }, generation: String(this.#generation) });
  }

  #addFact(fact: Fact): void {
    switch (fact.kind) {
      case 'task.created': {
        const { history = [], status } = fact.event.task;
        this.#generation = fact.generation;
        const generation = String(fact.generation);
        this.#entries.push(...history.map(message => ({ message, generation })), { status, generation });
        return;
      }
      case 'message.received':
        this.#entries.push({ message: fact.message, generation: String(this.#generation) });
        return;
      case 'status.changed':
        this.#generation = fact.generation;
        this.#entries.push({ status: fact.event.statusUpdate.status, generation: String(fact.generation) });
        return;
      case 'artifact.updated': {
        this.#generation = fact.generation;
        const { artifact, lastChunk } = fact.event.artifactUpdate;
        const start = this.#artifacts.get(artifact.artifactId)?.start ?? fact.generation;
        this.#artifacts.set(artifact.artifactId, { start, ...(lastChunk === true && { end: fact.generation }) });
        return;
      }
      default:
        return;
    }
  }

  #withSpan(artifact: Artifact): Artifact {
    const span = this.#artifacts.get(artifact.artifactId);
    if (span === undefined) return artifact;
    const end = span.end === undefined ? {} : { endGeneration: String(span.end) };
    return { ...artifact, startGeneration: String(span.start), ...end };
  }
}
