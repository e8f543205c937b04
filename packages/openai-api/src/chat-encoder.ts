import { isInProgress, isInterrupted, stateWord } from '@hopline/a2a';
import { type ViewChange, ViewFold, type ViewFoldOptions, type ViewItem } from '@hopline/task-view';
import type { OpenAIErrorBody } from './openai-error.ts';
import { OrderedText } from './ordered-text.ts';
import { createdAtOf } from './response-id.ts';
import { type ChatUsage, chatUsageOf } from './usage.ts';

/** `reasoning_content` is not OpenAI's, but chat pages such as Open WebUI show it as the thoughts of the model. */
type ChatDelta = { role?: 'assistant'; content?: string; reasoning_content?: string };

type ChatChunk = {
  id: string;
  object: 'chat.completion.chunk';
  created: number;
  model: string;
  choices: { index: 0; delta: ChatDelta; finish_reason: 'stop' | null; logprobs: null }[];
  usage?: ChatUsage;
};

type ChatCompletion = Omit<ChatChunk, 'object' | 'choices'> & {
  object: 'chat.completion';
  choices: {
    index: 0;
    message: { role: 'assistant'; content: string; refusal: null; reasoning_content?: string };
    finish_reason: 'stop';
    logprobs: null;
  }[];
};

/**
 * Encodes one turn of a task as a chat completion. The content is the answer: its texts in the order in which they began, so a text that begins
 * while another is open waits for its end. A question of the agent ends the content.
 */
export class ChatEncoder {
  readonly #fold: ViewFold;
  readonly #includesUsage: boolean;
  readonly #answer = new OrderedText();
  #reasoning = '';
  /** Known with the first event, and computed once, because each chunk repeats it. */
  #head: Omit<ChatChunk, 'choices'>;
  #hasEnded = false;
  #failure: OpenAIErrorBody | undefined;

  constructor({ model, includesUsage = false, ...options }: ViewFoldOptions & { model: string; includesUsage?: boolean }) {
    this.#fold = new ViewFold(options);
    this.#head = { id: 'chatcmpl-', object: 'chat.completion.chunk', created: 0, model };
    this.#includesUsage = includesUsage;
  }

  /** The turn has ended. No chunk follows. */
  get ended(): boolean {
    return this.#hasEnded;
  }

  /** Why the turn has no complete answer. */
  get failure(): OpenAIErrorBody | undefined {
    return this.#failure;
  }

  add(item: ViewItem): ChatChunk[] {
    const changes = this.#fold.add(item);
    // Most changes are one piece of text.
    if (changes.length === 1 && !this.#hasEnded) return this.#encode(changes[0]!);
    return changes.flatMap(change => (this.#hasEnded ? [] : this.#encode(change)));
  }

  /** The answer so far as one object. */
  completion(): ChatCompletion {
    const { id, created, model } = this.#head;
    const usage = chatUsageOf(this.#fold.view.usage);
    const reasoning = this.#reasoning === '' ? {} : { reasoning_content: this.#reasoning };
    const message = { role: 'assistant' as const, content: this.#answer.whole, refusal: null, ...reasoning };
    return {
      ...{ id, object: 'chat.completion', created, model },
      choices: [{ index: 0, message, finish_reason: 'stop', logprobs: null }],
      ...(usage !== undefined && { usage }),
    };
  }

  #encode(change: ViewChange): ChatChunk[] {
    switch (change.kind) {
      case 'task':
        this.#head = { ...this.#head, id: `chatcmpl-${change.taskId}`, created: createdAtOf(change.taskId) };
        return [this.#chunk({ role: 'assistant', content: '' })];
      case 'text':
        if (change.text.channel === 'plan') return this.#reason(change.delta);
        return this.#content(this.#answer.add(change.text.id, change.delta));
      case 'text-restarted':
        if (change.text.channel === 'plan') return this.#reason(`\n${change.whole}`);
        return this.#content(this.#answer.restart(change.text.id, change.whole));
      case 'text-ended':
        return change.text.channel === 'plan' ? this.#reason('\n') : this.#content(this.#answer.end(change.text.id));
      case 'question':
        return this.#content(this.#answer.endWith(change.question.text));
      case 'state':
        return this.#state(change);
      case 'turn':
      case 'tool-started':
      case 'tool-arguments':
      case 'tool-ended':
      case 'file':
      case 'progress':
      case 'usage':
      case 'gap':
        return [];
    }
  }

  #state({ state, reason }: ViewChange & { kind: 'state' }): ChatChunk[] {
    if (isInProgress(state)) return [];
    this.#hasEnded = true;
    if (state === 'TASK_STATE_COMPLETED' || isInterrupted(state)) {
      const { usage: shown } = this.#fold.view;
      const usage = this.#includesUsage ? chatUsageOf(shown) : undefined;
      const end = this.#chunk({}, 'stop');
      return usage === undefined ? [end] : [end, { ...this.#head, choices: [], usage }];
    }
    const message = reason ?? `the task is ${stateWord(state)}`;
    this.#failure = { error: { message, type: 'server_error', param: null, code: `task_${stateWord(state)}` } };
    return [];
  }

  #reason(text: string): ChatChunk[] {
    this.#reasoning += text;
    return text === '' ? [] : [this.#chunk({ reasoning_content: text })];
  }

  #content(text: string): ChatChunk[] {
    return text === '' ? [] : [this.#chunk({ content: text })];
  }

  #chunk(delta: ChatDelta, reason: 'stop' | null = null): ChatChunk {
    const { id, object, created, model } = this.#head;
    return { id, object, created, model, choices: [{ index: 0, delta, finish_reason: reason, logprobs: null }] };
  }
}
