import { setTimeout as delay } from 'node:timers/promises';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk, type BaseMessage } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';

export type Played = {
  tokens: readonly string[];
  calls?: readonly { id: string; name: string; args: object }[];
  pauseMs?: number;
};

/** A chat model that is played: it streams as models do, and says what the test wants. The graph around it is real. */
export class PlayedModel extends BaseChatModel {
  readonly #play: (messages: BaseMessage[]) => Played;

  constructor(play: (messages: BaseMessage[]) => Played) {
    super({});
    this.#play = play;
  }

  override _llmType(): string {
    return 'played';
  }

  /** Tools are known by the play itself. */
  override bindTools(): this {
    return this;
  }

  override async _generate(): Promise<ChatResult> {
    throw new Error('only streams');
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { tokens, calls = [], pauseMs } = this.#play(messages);
    for (const token of tokens) {
      if (pauseMs !== undefined) await delay(pauseMs, undefined, { signal: options.signal });
      yield await this.#said(new AIMessageChunk({ content: token }), manager);
    }
    for (const [index, { id, name, args }] of calls.entries()) {
      const chunk = { index, id, name, args: JSON.stringify(args), type: 'tool_call_chunk' as const };
      yield await this.#said(new AIMessageChunk({ content: '', tool_call_chunks: [chunk] }), manager);
    }
  }

  async #said(message: AIMessageChunk, manager?: CallbackManagerForLLMRun): Promise<ChatGenerationChunk> {
    const text = typeof message.content === 'string' ? message.content : '';
    const chunk = new ChatGenerationChunk({ message, text });
    await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    return chunk;
  }
}

export function says(...tokens: string[]): PlayedModel {
  return new PlayedModel(() => ({ tokens }));
}
