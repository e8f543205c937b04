import { setTimeout as delay } from 'node:timers/promises';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk, type BaseMessage, type UsageMetadata } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';

export type ScriptedAnswer = {
  tokens: readonly string[];
  calls?: readonly { id: string; name: string; args: object }[];
  pauseMs?: number;
  /** Tokens that the model reports with its last chunk. */
  usage?: UsageMetadata;
};

/** A chat model that streams tokens chosen by the test; the graph around it is real. */
export class ScriptedModel extends BaseChatModel {
  readonly #script: (messages: BaseMessage[]) => ScriptedAnswer;

  constructor(script: (messages: BaseMessage[]) => ScriptedAnswer) {
    super({});
    this.#script = script;
  }

  override _llmType(): string {
    return 'scripted';
  }

  /** The script knows its tools. */
  override bindTools(): this {
    return this;
  }

  override async _generate(): Promise<ChatResult> {
    throw new Error('a scripted model supports streaming only');
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    manager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { tokens, calls = [], pauseMs, usage } = this.#script(messages);
    for (const token of tokens) {
      if (pauseMs !== undefined) await delay(pauseMs, undefined, { signal: options.signal });
      yield await this.#chunkOf(new AIMessageChunk({ content: token }), manager);
    }
    for (const [index, { id, name, args }] of calls.entries()) {
      const chunk = { index, id, name, args: JSON.stringify(args), type: 'tool_call_chunk' as const };
      yield await this.#chunkOf(new AIMessageChunk({ content: '', tool_call_chunks: [chunk] }), manager);
    }
    if (usage !== undefined)
      yield await this.#chunkOf(new AIMessageChunk({ content: '', usage_metadata: usage as never }), manager);
  }

  async #chunkOf(message: AIMessageChunk, manager?: CallbackManagerForLLMRun): Promise<ChatGenerationChunk> {
    const text = typeof message.content === 'string' ? message.content : '';
    const chunk = new ChatGenerationChunk({ message, text });
    await manager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    return chunk;
  }
}

export function textModel(...tokens: string[]): ScriptedModel {
  return new ScriptedModel(() => ({ tokens }));
}
