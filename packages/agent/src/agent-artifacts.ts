import type { Artifact, Metadata, Part } from '@hopline/a2a';
import type { ArtifactInput, InputSource, LaneArtifact } from '@hopline/events';
import type { LaneWriter } from './lane-writer.ts';
import { BoundExceeded } from './limits.ts';
import { LaneText } from './streamed-text.ts';

type ArtifactLane = { lane: string; header: LaneArtifact; content: LaneText; closed: boolean };

export type AgentArtifactsOptions = {
  lanes: LaneWriter;
  /**
   * Prefix of the lane names. The artifact's number in the turn follows, so that a later attempt's first artifact replaces the first
   * artifact of an earlier one.
   */
  prefix: string;
  /** Lanes that an earlier attempt completed. They remain and are not written again. */
  closedLanes: ReadonlySet<string>;
  /** Added to the metadata of each artifact. */
  metadata?: Metadata;
  /** Properties of the lanes (`LaneArtifact`). */
  separateClose?: true;
  /** Maximum JSON bytes of an artifact event that is not plain text. */
  bytesMax: number;
  /** Called with each new artifact; may throw. */
  onNew: () => void;
};

/**
 * The agent's own artifacts, chunk by chunk. Plain text goes to a lane and is coalesced; other parts pass unchanged. A chunk that appends to
 * an artifact that was never opened opens it, so that its text is not lost.
 */
export class AgentArtifacts {
  readonly #options: AgentArtifactsOptions;
  readonly #byId = new Map<string, ArtifactLane>();

  constructor(options: AgentArtifactsOptions) {
    this.#options = options;
  }

  take(artifact: Artifact, append: boolean, last: boolean, source?: InputSource): void {
    const { lanes } = this.#options;
    const written = this.#byId.get(artifact.artifactId) ?? this.#create(artifact);
    if (written.closed) return;
    const { lane, header, content } = written;
    const text = plainText(artifact.parts);
    const origin = source && { source };
    if (text === undefined) this.#pass(written, { parts: artifact.parts, append, last, ...origin });
    else if (text !== '' || content.length > 0 || lanes.isOpen(lane))
      lanes.write(lane, header, append ? content.token(text) : content.snapshot(text), origin);
    else if (last) this.#pass(written, { parts: artifact.parts, append, last, ...origin });
    if (!last) return;
    lanes.close(lane);
    written.closed = true;
  }

  #create({ artifactId, parts: _parts, ...shown }: Artifact): ArtifactLane {
    const { prefix, closedLanes, metadata, separateClose, onNew } = this.#options;
    onNew();
    const merged = metadata && { metadata: { ...shown.metadata, ...metadata } };
    const header = { ...shown, ...merged, ...(separateClose && { separateClose }) };
    const lane = `${prefix}/${this.#byId.size + 1}`;
    const written = { lane, header, content: new LaneText(), closed: closedLanes.has(lane) };
    this.#byId.set(artifactId, written);
    return written;
  }

  #pass({ lane, header }: ArtifactLane, update: Pick<ArtifactInput, 'parts' | 'append' | 'last' | 'source'>): void {
    const { lanes, bytesMax } = this.#options;
    const bytes = Buffer.byteLength(JSON.stringify(update.parts));
    if (bytes > bytesMax) throw new BoundExceeded(`an artifact of the agent has more than ${bytesMax} bytes`);
    lanes.artifact({ kind: 'artifact', lane, artifact: header, ...update });
  }
}

/** The text of an artifact that is plain text: it has one text part, without its own name or type. Without any part the text is empty. */
function plainText(parts: readonly Part[]): string | undefined {
  const [part, ...more] = parts;
  if (part === undefined) return '';
  return more.length === 0 && part.text !== undefined && Object.keys(part).length === 1 ? part.text : undefined;
}
