import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** One step of a scripted response. */
export type ResponseStep =
  | { text: string }
  /** One chunk per token, as providers send them. */
  | { tokens: readonly string[]; everyMs?: number }
  | { reasoning: string }
  /** Text of a model that declines. OpenAI has a separate field for it. */
  | { refusal: string }
  /** A tool call; its arguments are sent in pieces of `piece` characters. Calls of one response run in parallel. */
  | { call: string; args: unknown; id?: string; piece?: number }
  /** A tool call with truncated arguments. */
  | { halfCall: string; args: string }
  | { pause: number }
  /** Waits for a promise that the test resolves. */
  | { until: Promise<unknown> }
  /** Sends nothing more and keeps the connection open. */
  | { stall: true }
  /** Sends comments and chunks without content, as providers keep a connection open, and nothing more. */
  | { keepAlive: true }
  /** Closes the connection in the middle of the response. */
  | { cut: true }
  /** Ends the response without a finish reason. */
  | { end: true }
  | { finish: string }
  /** An error event in the stream. */
  | { streamError: string }
  /** A line of invalid JSON. */
  | { garbage: true };

type Refusal = { status: number; code?: string; headers?: Record<string, string> };

/** A received request. */
export type ModelRequest = {
  model: string;
  messages: { role: string; content?: string | null; tool_calls?: unknown[]; tool_call_id?: string }[];
  tools: { function: { name: string; description: string; parameters: unknown } }[];
  headers: Record<string, string | string[] | undefined>;
};

export type Reply = readonly ResponseStep[] | Refusal;

/** A scripted model server that speaks OpenAI chat-completions streaming. */
export class ModelServer implements AsyncDisposable {
  readonly requests: ModelRequest[] = [];
  /** Unfinished responses with an open connection. */
  open = 0;
  readonly #server;
  /** The response to the nth request (1-based). `closed` resolves when the response is over, even if the client has left. */
  reply: (request: ModelRequest, nth: number, closed: Promise<unknown>) => Reply;

  private constructor(reply: ModelServer['reply']) {
    this.reply = reply;
    this.#server = createServer((incoming, response) => {
      void (async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of incoming) chunks.push(chunk as Buffer);
        const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        const request = { model: body.model, messages: body.messages, tools: body.tools ?? [], headers: incoming.headers };
        this.requests.push(request);
        this.open += 1;
        response.on('close', () => {
          this.open -= 1;
        });
        const reply = this.reply(request, this.requests.length, once(response, 'close'));
        if (body.stream !== true && isScript(reply)) await answerWhole(response, reply);
        else await play(response, reply);
      })().catch(() => response.destroy());
    });
  }

  static async start(reply: ModelServer['reply'] = () => [{ text: 'hello' }]): Promise<ModelServer> {
    const server = new ModelServer(reply);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** Base URL for an OpenAI client. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

async function play(response: ServerResponse, reply: Reply): Promise<void> {
  if (!isScript(reply)) {
    const { status, code, headers } = reply;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify({ error: { message: 'secret words of the provider', type: 'error', code } }));
    return;
  }
  const gone = new AbortController();
  response.on('close', () => gone.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  const chat = new Chat(response, gone.signal);
  for (const step of reply) {
    if (!(await chat.run(step))) return;
  }
  chat.finish();
}

/** The response to a request without `stream`: the texts and calls of the script, after the script's waits. */
async function answerWhole(response: ServerResponse, script: readonly ResponseStep[]): Promise<void> {
  for (const step of script) if ('until' in step) await step.until;
  const texts = script.flatMap(step => ('text' in step ? [step.text] : 'tokens' in step ? step.tokens : []));
  const calls = script.flatMap((step, index) =>
    'call' in step
      ? [
          {
            id: step.id ?? `call_${index}`,
            type: 'function',
            function: { name: step.call, arguments: JSON.stringify(step.args) },
          },
        ]
      : [],
  );
  const message = { role: 'assistant', content: texts.join(''), ...(calls.length > 0 && { tool_calls: calls }) };
  const choices = [{ index: 0, message, finish_reason: calls.length > 0 ? 'tool_calls' : 'stop' }];
  const usage = { prompt_tokens: 11, completion_tokens: texts.length, total_tokens: 11 + texts.length };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion', created: 1, model: 'stand-in', choices, usage }));
}

const isScript = (reply: Reply): reply is readonly ResponseStep[] => Array.isArray(reply);

/** One streamed completion. */
class Chat {
  readonly #response: ServerResponse;
  readonly #gone: AbortSignal;
  #calls = 0;
  #tokens = 0;
  #reasoned = 0;

  constructor(response: ServerResponse, gone: AbortSignal) {
    this.#response = response;
    this.#gone = gone;
  }

  /** Returns whether the response continues. */
  async run(step: ResponseStep): Promise<boolean> {
    if ('text' in step) this.#delta({ content: step.text });
    else if ('tokens' in step) await this.#stream(step.tokens, step.everyMs);
    else if ('reasoning' in step) this.#reason(step.reasoning);
    else if ('refusal' in step) this.#delta({ refusal: step.refusal });
    else if ('call' in step) this.#call(step.call, JSON.stringify(step.args), step.piece ?? 5, step.id);
    else if ('halfCall' in step) this.#call(step.halfCall, step.args, 5);
    else if ('pause' in step) await sleep(step.pause, undefined, { signal: this.#gone });
    else if ('until' in step) await step.until;
    else if ('streamError' in step) this.#write({ error: { message: step.streamError, type: 'server_error' } });
    else if ('garbage' in step) this.#response.write('data: {"choices":[{"delta"\n\n');
    else if ('keepAlive' in step) await this.#keepAlive();
    else return this.#end(step);
    return true;
  }

  finish(reason = this.#calls > 0 ? 'tool_calls' : 'stop'): void {
    this.#write({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
    const usage = {
      prompt_tokens: 11,
      completion_tokens: this.#tokens,
      total_tokens: 11 + this.#tokens,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: this.#reasoned },
    };
    this.#write({ choices: [], usage });
    this.#response.end('data: [DONE]\n\n');
  }

  #reason(text: string): void {
    this.#reasoned += 1;
    this.#delta({ reasoning_content: text });
  }

  #end(step: ResponseStep): false {
    if ('finish' in step) this.finish(step.finish);
    else if ('cut' in step) this.#response.socket?.end();
    else if ('end' in step) this.#response.end();
    return false;
  }

  async #stream(tokens: readonly string[], everyMs: number | undefined): Promise<void> {
    for (const token of tokens) {
      this.#delta({ content: token });
      if (everyMs !== undefined) await sleep(everyMs, undefined, { signal: this.#gone });
    }
  }

  async #keepAlive(): Promise<void> {
    for (;;) {
      this.#response.write(': PROCESSING\n\n');
      this.#delta({ content: '' });
      await sleep(20, undefined, { signal: this.#gone });
    }
  }

  #call(name: string, args: string, piece: number, id = `call_${this.#calls}`): void {
    const index = this.#calls++;
    this.#delta({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
    for (let at = 0; at < args.length; at += piece) {
      this.#delta({ tool_calls: [{ index, function: { arguments: args.slice(at, at + piece) } }] });
    }
  }

  #delta(delta: Record<string, unknown>): void {
    this.#tokens += 1;
    this.#write({ choices: [{ index: 0, delta, finish_reason: null }] });
  }

  #write(value: object): void {
    const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'stand-in', ...value };
    this.#response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  }
}

/** Text of the newest message of a role. */
export function newest(request: ModelRequest, role: string): string {
  const content: unknown = request.messages.findLast(message => message.role === role)?.content ?? '';
  if (!Array.isArray(content)) return String(content);
  return content.map(({ text = '' }: { text?: string }) => text).join('');
}
