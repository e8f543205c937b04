import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ID_CHARS_MAX, isObject } from '@hopline/a2a';

/** The point that a conversation with a server has reached. */
export type Conversation = {
  contextId: string;
  /** The agent that the user named. */
  agent?: string;
  /** The task that waits for an answer. */
  taskId?: string;
};

/**
 * The last conversation with each server, for `--continue`: one file per server with mode 0600, in HOPLINE_HOME, else in the XDG
 * state folder. It has ids, never text.
 */
export class Conversations {
  readonly #folder: string | undefined;

  constructor({ HOPLINE_HOME, XDG_STATE_HOME, HOME, USERPROFILE }: Readonly<Record<string, string | undefined>>) {
    const home = HOME || USERPROFILE;
    const state = XDG_STATE_HOME || (home && join(home, '.local', 'state'));
    const base = HOPLINE_HOME ? resolve(HOPLINE_HOME) : state && join(state, 'hopline');
    this.#folder = base && join(base, 'conversations');
  }

  last(url: string): Conversation | undefined {
    const path = this.#path(url);
    if (path === undefined) return undefined;
    try {
      return conversationOf(JSON.parse(readFileSync(path, 'utf8')));
    } catch {
      return undefined;
    }
  }

  /** Returns false when it cannot be stored: the question has already been answered, so this must not make it fail. */
  remember(url: string, conversation: Conversation): boolean {
    const path = this.#path(url);
    if (path === undefined || this.#folder === undefined) return false;
    const draft = `${path}.${process.pid}`;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      rmSync(draft, { force: true });
      // Replaced as a whole, so that a command that reads at the same time finds either the old file or the new one.
      writeFileSync(draft, `${JSON.stringify({ url: addressOf(url), ...conversation })}\n`, { mode: 0o600 });
      renameSync(draft, path);
      return true;
    } catch {
      return false;
    }
  }

  #path(url: string): string | undefined {
    const name = createHash('sha256').update(addressOf(url)).digest('hex').slice(0, 16);
    return this.#folder && join(this.#folder, `${name}.json`);
  }
}

/** The URL without anything that may be a credential. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function conversationOf(value: unknown): Conversation | undefined {
  const { contextId, agent, taskId } = isObject(value) ? value : {};
  if (!isId(contextId)) return undefined;
  return { contextId, ...(isId(agent) && { agent }), ...(isId(taskId) && { taskId }) };
}

function isId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= ID_CHARS_MAX;
}
