import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What the stand-in does next in one response. */
export type Say =
  | { text: string }
  /** Each a chunk of its own, as a provider sends tokens. */
  | { tokens: readonly string[]; everyMs?: number }
  | { reasoning: string }
  /** A tool call; its arguments arrive in pieces of `piece` characters. Calls of one response run in parallel. */
  | { call: string; args: unknown; id?: string; piece?: number }
  /** A tool call whose arguments stop in the middle. */
  | { halfCall: string; args: string }
  | { pause: number }
  /** Waits for the test. */
  | { until: Promise<unknown> }
  /** Says nothing more and keeps the connection. */
  | { stall: true }
  /** Closes the connection after what was said, without the end of the response. */
  | { cut: true }
  /** Ends the response politely, without a finish reason. */
  | { end: true }
  | { finish: string }
  /** An error event in the stream. */
  | { streamError: string }
  /** A line that is no JSON. */
  | { garbage: true };

type Refusal = { status: number; code?: string; headers?: Record<string, string> };

/** A request as it came. */
export type Asked = {
  model: string;
  messages: { role: string; content?: string | null; tool_calls?: unknown[]; tool_call_id?: string }[];
  tools: { function: { name: string; description: string; parameters: unknown } }[];
  headers: Record<string, string | string[] | undefined>;
};

export type Reply = readonly Say[] | Refusal;

/** A stand-in for a model server: the OpenAI chat-completions streaming wire, played as a test says. */
export class ModelServer implements AsyncDisposable {
  readonly asked: Asked[] = [];
  /** Responses whose connection is open and that have not ended. */
  open = 0;
  readonly #server;
  /** Answers the nth request (1-based). */
  reply: (asked: Asked, nth: number) => Reply;

  private constructor(reply: ModelServer['reply']) {
    this.reply = reply;
    this.#server = createServer((request, response) => {
      void (async () => {
        const chunks: Buffer[] = [];
        for await (const chunk of request) chunks.push(chunk as Buffer);
        const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        const asked = { model: body.model, messages: body.messages, tools: body.tools ?? [], headers: request.headers };
        this.asked.push(asked);
        this.open += 1;
        response.on('close', () => {
          this.open -= 1;
        });
        await play(response, this.reply(asked, this.asked.length));
      })().catch(() => response.destroy());
    });
  }

  static async start(reply: ModelServer['reply'] = () => [{ text: 'hello' }]): Promise<ModelServer> {
    const server = new ModelServer(reply);
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  /** What an OpenAI client is given as its base URL. */
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
  for (const say of reply) {
    if (!(await chat.say(say))) return;
  }
  chat.finish();
}

const isScript = (reply: Reply): reply is readonly Say[] => Array.isArray(reply);

/** One streamed completion. */
class Chat {
  readonly #response: ServerResponse;
  readonly #gone: AbortSignal;
  #calls = 0;
  #tokens = 0;

  constructor(response: ServerResponse, gone: AbortSignal) {
    this.#response = response;
    this.#gone = gone;
  }

  /** Returns whether the response goes on. */
  async say(say: Say): Promise<boolean> {
    if ('text' in say) this.#delta({ content: say.text });
    else if ('tokens' in say) await this.#stream(say.tokens, say.everyMs);
    else if ('reasoning' in say) this.#delta({ reasoning_content: say.reasoning });
    else if ('call' in say) this.#call(say.call, JSON.stringify(say.args), say.piece ?? 5, say.id);
    else if ('halfCall' in say) this.#call(say.halfCall, say.args, 5);
    else if ('pause' in say) await sleep(say.pause, undefined, { signal: this.#gone });
    else if ('until' in say) await say.until;
    else if ('streamError' in say) this.#write({ error: { message: say.streamError, type: 'server_error' } });
    else if ('garbage' in say) this.#response.write('data: {"choices":[{"delta"\n\n');
    else return this.#ending(say);
    return true;
  }

  finish(reason = this.#calls > 0 ? 'tool_calls' : 'stop'): void {
    this.#write({ choices: [{ index: 0, delta: {}, finish_reason: reason }] });
    const usage = { prompt_tokens: 11, completion_tokens: this.#tokens, total_tokens: 11 + this.#tokens };
    this.#write({ choices: [], usage });
    this.#response.end('data: [DONE]\n\n');
  }

  #ending(say: Say): false {
    if ('finish' in say) this.finish(say.finish);
    else if ('cut' in say) this.#response.socket?.end();
    else if ('end' in say) this.#response.end();
    return false;
  }

  async #stream(tokens: readonly string[], everyMs: number | undefined): Promise<void> {
    for (const token of tokens) {
      this.#delta({ content: token });
      if (everyMs !== undefined) await sleep(everyMs, undefined, { signal: this.#gone });
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

/** The text of the newest message of one role. */
export function newest(asked: Asked, role: string): string {
  return asked.messages.findLast(message => message.role === role)?.content ?? '';
}
