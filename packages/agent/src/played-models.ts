/**
 * The answer of a model to one request. A string is a recorded stream, byte for byte: the body of the provider's response (`curl -N …
 * /chat/completions`). `status`: the request fails with this status.
 */
export type ModelReply =
  | string
  | { text?: string | readonly string[]; calls?: readonly { name: string; args?: unknown }[]; reasoning?: string }
  | { status: number };

/** A request to a model, as its server receives it. */
export type ModelPrompt = {
  model: string;
  messages: readonly { role: string; content?: unknown; tool_calls?: unknown; tool_call_id?: string }[];
  tools?: readonly { function: { name: string; description?: string; parameters?: unknown } }[];
};

/** The server of the models of a played turn. */
export class PlayedModels {
  readonly prompts: ModelPrompt[] = [];
  readonly #replies: readonly ModelReply[];

  constructor(replies: readonly ModelReply[]) {
    this.#replies = replies;
  }

  readonly fetch = async (_url: unknown, init?: RequestInit): Promise<Response> => {
    this.prompts.push(JSON.parse(String(init?.body)) as ModelPrompt);
    const reply = this.#replies[this.prompts.length - 1];
    if (reply === undefined) return new Response('{}', { status: 400 });
    if (typeof reply === 'object' && 'status' in reply) return new Response('{}', { status: reply.status });
    const body = typeof reply === 'string' ? reply : streamOf(reply);
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  };

  /** Throws if the turn has made more requests than there are replies. */
  check(): void {
    const { length } = this.#replies;
    if (this.prompts.length > length)
      throw new Error(`the turn sent ${this.prompts.length} requests to models, but \`model\` has ${length} answers`);
  }
}

/** The stream of a provider. */
function streamOf({ text = [], calls = [], reasoning }: Exclude<ModelReply, string | { status: number }>): string {
  const texts = typeof text === 'string' ? [text] : text;
  const toolCalls = calls.map(({ name, args = {} }, index) => {
    return { index, id: `call-${index + 1}`, type: 'function', function: { name, arguments: JSON.stringify(args) } };
  });
  const deltas: object[] = [
    ...(reasoning === undefined ? [] : [{ reasoning_content: reasoning }]),
    ...texts.map(content => ({ content })),
    ...(toolCalls.length === 0 ? [] : [{ tool_calls: toolCalls }]),
  ];
  const choices = [
    ...deltas.map(delta => ({ index: 0, delta, finish_reason: null })),
    { index: 0, delta: {}, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' },
  ];
  const events = choices.map(choice => ({ id: 'played', object: 'chat.completion.chunk', choices: [choice] }));
  return `${events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`;
}
