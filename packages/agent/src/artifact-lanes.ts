import type { Artifact, Metadata, Part } from '@hopline/a2a';
import type { ArtifactInput, InputSource, LaneArtifact } from '@hopline/events';
import type { Lanes } from './lanes.ts';
import { BoundExceeded } from './limits.ts';
import { SaidText } from './said-text.ts';

type Shown = { lane: string; artifact: LaneArtifact; said: SaidText; closed: boolean };

export type ArtifactLanesOptions = {
  lanes: Lanes;
  /** Of the lane names; the artifact's place in the turn is added, so that a later attempt's first artifact replaces the dead one's first. */
  prefix: string;
  /** Lanes that an earlier attempt completed: they stand, and are not said again. */
  closed: ReadonlySet<string>;
  /** Added to the metadata of each. */
  metadata?: Metadata;
  /** JSON bytes of an artifact event that is not plain text. */
  bytesMax: number;
  /** Told of each new artifact; may throw. */
  onNew: () => void;
};

/**
 * An agent's own artifacts, chunk by chunk as it sends them. Plain text goes over a lane and is coalesced; everything else passes as it is. A chunk that appends to an
 * artifact that was never opened opens it: its text must not be lost.
 */
export class ArtifactLanes {
  readonly #options: ArtifactLanesOptions;
  readonly #shown = new Map<string, Shown>();

  constructor(options: ArtifactLanesOptions) {
    this.#options = options;
  }

  take(artifact: Artifact, append: boolean, last: boolean, source?: InputSource): void {
    const { lanes } = this.#options;
    const shown = this.#shown.get(artifact.artifactId) ?? this.#begin(artifact);
    if (shown.closed) return;
    const text = plainText(artifact.parts);
    const said = source && { source };
    if (text === undefined) this.#pass(shown, { parts: artifact.parts, append, last, ...said });
    else if (text !== '' || shown.said.length > 0 || lanes.isOpen(shown.lane)) {
      lanes.say(shown.lane, shown.artifact, append ? shown.said.token(text) : shown.said.snapshot(text), said);
    } else if (last) this.#pass(shown, { parts: artifact.parts, append, last, ...said });
    if (!last) return;
    lanes.close(shown.lane);
    shown.closed = true;
  }

  #begin({ artifactId, parts: _parts, ...said }: Artifact): Shown {
    const { prefix, closed, metadata, onNew } = this.#options;
    onNew();
    const artifact = metadata === undefined ? said : { ...said, metadata: { ...said.metadata, ...metadata } };
    const lane = `${prefix}/${this.#shown.size + 1}`;
    const shown = { lane, artifact, said: new SaidText(), closed: closed.has(lane) };
    this.#shown.set(artifactId, shown);
    return shown;
  }

  #pass({ lane, artifact }: Shown, update: Pick<ArtifactInput, 'parts' | 'append' | 'last' | 'source'>): void {
    const { lanes, bytesMax } = this.#options;
    const bytes = Buffer.byteLength(JSON.stringify(update.parts));
    if (bytes > bytesMax) throw new BoundExceeded(`an artifact of the agent has more than ${bytesMax} bytes`);
    lanes.artifact({ kind: 'artifact', lane, artifact, ...update });
  }
}

/** The text, when it is nothing but text: one part without a name or type of its own. No part at all is empty text. */
function plainText(parts: readonly Part[]): string | undefined {
  const [part, ...more] = parts;
  if (part === undefined) return '';
  return more.length === 0 && part.text !== undefined && Object.keys(part).length === 1 ? part.text : undefined;
}
