import { randomUUID } from 'node:crypto';
import type { ToolNotice } from './tool-notice.ts';

/** Maximum number of calls that have started and not ended; above it, the oldest is dropped. */
export const OPEN_CALLS_MAX = 256;

/** Assigns call ids to notices that have none: an end belongs to the oldest open call of its tool. */
export class OpenCalls {
  /** Call id to tool, oldest first. */
  readonly #open = new Map<string, string>();

  isOpen(tool: string): boolean {
    return this.#find(tool) !== undefined;
  }

  idOf({ phase, tool, callId }: ToolNotice): string {
    if (phase === 'start') return this.#begin(callId ?? randomUUID(), tool);
    const id = callId ?? this.#find(tool) ?? randomUUID();
    this.#open.delete(id);
    return id;
  }

  #begin(id: string, tool: string): string {
    if (this.#open.size >= OPEN_CALLS_MAX) {
      for (const oldest of this.#open.keys()) {
        this.#open.delete(oldest);
        break;
      }
    }
    this.#open.set(id, tool);
    return id;
  }

  #find(tool: string): string | undefined {
    for (const [id, name] of this.#open) if (name === tool) return id;
    return undefined;
  }
}
