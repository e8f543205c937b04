import type { Artifact, Metadata, Part } from '@hopline/a2a';
import type { ArtifactInput, LaneArtifact } from '@hopline/events';
import type { ArtifactChunk } from './agent-text.ts';
import { LaneText } from './growing-text.ts';
import { type LaneWriter, UNIT_BYTES_MAX } from './lane-writer.ts';
import { BoundExceeded, WHOLE_TEXT_UNITS_MAX } from './limits.ts';

/** `isWritten`: an earlier attempt has completed the artifact, so it is not written again. `hasEnded`: this attempt has completed it. */
type ArtifactLane = { lane: string; header: LaneArtifact; content: LaneText; isWritten: boolean; hasEnded: boolean };

type AgentArtifactsOptions = {
  lanes: LaneWriter;
  /**
   * Prefix of the lane names. The artifact's number in the turn follows, so that a later attempt's first artifact replaces the first
   * artifact of an earlier one.
   */
  prefix: string;
  /** Lanes that an earlier attempt completed. They stay, and are not written again. */
  closedLanes: ReadonlySet<string>;
  /** Added to the metadata of each artifact. */
  metadata?: Metadata;
  /** Properties of the lanes (`LaneArtifact`). */
  separateClose?: true;
  /** Maximum JSON bytes of an artifact event other than plain text. */
  bytesMax: number;
  /** Called with each new artifact; may throw. */
  onNew: () => void;
};

/**
 * The agent's own artifacts, chunk by chunk. Plain text goes to a lane and is coalesced, unless it is short and complete; other parts pass
 * unchanged. If a chunk appends to an artifact that was never opened, it opens the artifact, so that its text is not lost. For the same
 * reason a chunk of an artifact that has ended begins another artifact. There is one exception: a chunk in which a server repeats what it
 * has already sent adds nothing.
 */
export class AgentArtifacts {
  readonly #options: AgentArtifactsOptions;
  readonly #byId = new Map<string, ArtifactLane>();
  #lanes = 0;

  constructor(options: AgentArtifactsOptions) {
    this.#options = options;
  }

  take({ artifact, append, lastChunk: last, apart, source }: ArtifactChunk): void {
    const { lanes } = this.#options;
    const known = this.#byId.get(artifact.artifactId);
    if (known?.hasEnded === true && apart !== true) return;
    const isNew = known === undefined || known.hasEnded;
    const written = isNew ? this.#create(artifact) : known;
    written.hasEnded = last;
    if (written.isWritten) return;
    const { lane, header, content } = written;
    const text = plainText(artifact.parts);
    const origin = source && { source };
    if (text === undefined || (isNew && last && text.length <= this.#wholeUnitsMax))
      this.#pass(written, { parts: artifact.parts, append, last, ...origin });
    else if (text !== '' || content.length > 0 || lanes.isOpen(lane))
      lanes.write(lane, header, append ? content.token(text) : content.snapshot(text), origin);
    else if (last) this.#pass(written, { parts: artifact.parts, append, last, ...origin });
    if (last) lanes.close(lane);
  }

  /** Longest text that is certain to fit into one event. */
  get #wholeUnitsMax(): number {
    return Math.min(WHOLE_TEXT_UNITS_MAX, this.#options.bytesMax / UNIT_BYTES_MAX);
  }

  #create({ artifactId, parts: _parts, ...shown }: Artifact): ArtifactLane {
    const { prefix, closedLanes, metadata, separateClose, onNew } = this.#options;
    onNew();
    const merged = metadata && { metadata: { ...shown.metadata, ...metadata } };
    const header = { ...shown, ...merged, ...(separateClose && { separateClose }) };
    this.#lanes += 1;
    const lane = `${prefix}/${this.#lanes}`;
    const written = { lane, header, content: new LaneText(), isWritten: closedLanes.has(lane), hasEnded: false };
    this.#byId.set(artifactId, written);
    return written;
  }

  #pass({ lane, header }: ArtifactLane, update: Pick<ArtifactInput, 'parts' | 'append' | 'last' | 'source'>): void {
    const { lanes, bytesMax } = this.#options;
    const bytes = Buffer.byteLength(JSON.stringify(update.parts));
    if (bytes > bytesMax) {
      const advice = 'send it in chunks (append, last), or as a URL';
      throw new BoundExceeded(`an artifact of the agent has more than ${bytesMax} bytes of JSON in one event: ${advice}`);
    }
    lanes.artifact({ kind: 'artifact', lane, artifact: header, ...update });
  }
}

/** The text of an artifact that is plain text: it has one text part, without its own name or type. Without any part the text is empty. */
function plainText(parts: readonly Part[]): string | undefined {
  const [part, ...more] = parts;
  if (part === undefined) return '';
  return more.length === 0 && part.text !== undefined && Object.keys(part).length === 1 ? part.text : undefined;
}
