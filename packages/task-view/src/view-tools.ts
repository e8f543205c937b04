import { type Artifact, isObject, textOf } from '@hopline/a2a/client';
import type { ViewTool } from './client-view.ts';
import type { ViewChange } from './view-change.ts';

/** The calls of a task, from the notices of their starts and ends. */
export class ViewTools {
  readonly #tools = new Map<string, ViewTool>();
  /** Id of the call of each notice, so that a snapshot does not repeat it. */
  readonly #notices = new Map<string, string>();
  readonly #changes: (change: ViewChange) => void;
  #list: readonly ViewTool[] | undefined;

  constructor(changes: (change: ViewChange) => void) {
    this.#changes = changes;
  }

  get list(): readonly ViewTool[] {
    this.#list ??= [...this.#tools.values()];
    return this.#list;
  }

  start(artifact: Artifact, turn: number): void {
    const { artifactId, metadata = {} } = artifact;
    const shown = this.#tools.get(this.#notices.get(artifactId) ?? '');
    if (shown !== undefined) {
      this.#setArguments(shown, metadata.arguments);
      return;
    }
    const id = typeof metadata.toolCallId === 'string' ? metadata.toolCallId : artifactId;
    this.#notices.set(artifactId, id);
    const known = this.#tools.get(id);
    // A later attempt of the agent shows a call again.
    const tool: ViewTool = {
      ...{ id, tool: toolOf(artifact), agent: agentOf(artifact), turn: known?.turn ?? turn, outcome: 'running' },
      ...{ arguments: undefined, result: undefined, notice: textOf(artifact.parts) },
    };
    this.#set(tool);
    this.#changes({ kind: 'tool-started', tool });
    this.#setArguments(tool, metadata.arguments);
  }

  end(artifact: Artifact, turn: number): void {
    const { artifactId, metadata = {} } = artifact;
    if (this.#notices.has(artifactId)) return;
    const id = this.#callOf(artifact);
    this.#notices.set(artifactId, id);
    const known = this.#tools.get(id);
    if (known === undefined) this.#begin(id, artifact, turn);
    const outcome = metadata.failed === true ? 'failed' : metadata.waiting === true ? 'waiting' : 'completed';
    this.#end({ ...this.#tools.get(id)!, outcome, result: metadata.result, notice: textOf(artifact.parts) });
  }

  /** The turn has ended: no end of an open call follows. */
  endAll(): void {
    for (const tool of this.#tools.values()) if (tool.outcome === 'running') this.#end({ ...tool, outcome: 'unknown' });
  }

  /** An end without its start, which a gap may have removed. */
  #begin(id: string, artifact: Artifact, turn: number): void {
    const tool: ViewTool = {
      ...{ id, tool: toolOf(artifact), agent: agentOf(artifact), turn, outcome: 'running' },
      ...{ arguments: undefined, result: undefined, notice: '' },
    };
    this.#set(tool);
    this.#changes({ kind: 'tool-started', tool });
    this.#setArguments(tool, artifact.metadata?.arguments);
  }

  /** Servers whose notices have no ids end the oldest open call of the tool, or of any tool. */
  #callOf(artifact: Artifact): string {
    const { toolCallId, tool } = artifact.metadata ?? {};
    if (typeof toolCallId === 'string') return toolCallId;
    const open = this.list.filter(({ outcome }) => outcome === 'running');
    return (open.find(one => one.tool === tool) ?? open[0])?.id ?? artifact.artifactId;
  }

  #setArguments(shown: ViewTool, value: unknown): void {
    if (value === undefined || shown.arguments !== undefined) return;
    const tool = { ...shown, arguments: value };
    this.#set(tool);
    this.#changes({ kind: 'tool-arguments', tool });
  }

  #end(tool: ViewTool): void {
    this.#set(tool);
    this.#changes({ kind: 'tool-ended', tool });
  }

  #set(tool: ViewTool): void {
    this.#tools.set(tool.id, tool);
    this.#list = undefined;
  }
}

function toolOf({ name, metadata }: Artifact): string {
  return typeof metadata?.tool === 'string' ? metadata.tool : (name ?? 'tool');
}

/** The agent that an artifact names as its writer. */
export function agentOf({ metadata }: Pick<Artifact, 'metadata'>): string | undefined {
  return isObject(metadata) && typeof metadata.sourceAgent === 'string' ? metadata.sourceAgent : undefined;
}
