import assert from 'node:assert/strict';
import type { Metadata, Part } from '@hopline/a2a';
import { type Client, createClient } from '@hopline/client';
import type { ClientView } from '@hopline/task-view';

type SentMessage = { parts: Part[]; taskId?: string };

/** Sends messages to a cluster, and reads the view that a client has when the task has ended or asks a question. */
export class ClientViews {
  readonly client: Client;
  readonly #metadata: Metadata | undefined;

  /** `agent`: the agent of all messages; absent if the cluster has one. */
  constructor(url: string, agent?: string) {
    this.client = createClient({ url });
    this.#metadata = agent === undefined ? undefined : { agent };
  }

  /** Returns the id of the task without waiting for its end. */
  async send(message: string | SentMessage): Promise<string> {
    const sent = await this.client.send(typeof message === 'string' ? { parts: [{ text: message }] } : message, {
      blocking: false,
      ...(this.#metadata !== undefined && { metadata: this.#metadata }),
    });
    assert.ok('task' in sent);
    return sent.task.id;
  }

  /** The last view of the task, or the first view of `turn` or a later turn that has a question. */
  async watched(taskId: string, turn = 1): Promise<ClientView> {
    let last: ClientView | undefined;
    for await (const view of this.client.watch(taskId)) {
      last = view;
      if (view.question !== undefined && view.turn >= turn) break;
    }
    return last!;
  }

  async ask(message: string | SentMessage): Promise<ClientView> {
    return await this.watched(await this.send(message));
  }

  /** The view after the answer to a question. */
  async answer({ taskId, turn }: ClientView, parts: Part[]): Promise<ClientView> {
    return await this.watched(await this.send({ taskId: taskId!, parts }), turn + 1);
  }
}
