// Runs in a pod, in the image of Hopline. Asks one question repeatedly through the Service, and prints one line of JSON for each answer.
import { createHash, randomUUID } from 'node:crypto';

const { URL: url, QUESTION: question, WORKERS: workers } = process.env;
const RETRY_MS = 200;
/** A stream sends a heartbeat every 15 s. */
const SILENCE_MS_MAX = 40_000;
/** The answer, as it is streamed and as a whole. The plan and notices, e.g. about an agent that is away, differ between tasks. */
const ANSWERS = ['streaming_result', 'partial_result'];

async function* frames(response, signal) {
  let buffer = '';
  for await (const text of response.body.pipeThrough(new TextDecoderStream(), { signal })) {
    buffer += text;
    for (let end = buffer.indexOf('\n\n'); end >= 0; end = buffer.indexOf('\n\n')) {
      const lines = buffer.slice(0, end).split('\n');
      buffer = buffer.slice(end + 2);
      const of = name => lines.filter(line => line.startsWith(`${name}: `)).map(line => line.slice(name.length + 2));
      yield { event: of('event')[0], id: of('id')[0], data: of('data').join('\n'), retryMs: Number(of('retry')[0] ?? RETRY_MS) };
    }
  }
}

class Question {
  report = { ms: 0, refused: 0, failed: [], drained: 0, broken: 0, gaps: 0, silencesMs: [], state: undefined };
  #message = { kind: 'message', role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: question }] };
  #artifacts = new Map();
  #task;
  #cursor;
  #lastMs = performance.now();

  async answer() {
    const startedMs = performance.now();
    while (this.report.state === undefined) {
      const waitMs = await this.#request();
      if (this.report.state === undefined) await new Promise(resolve => setTimeout(resolve, waitMs));
    }
    const text = [...this.#artifacts.values()].join('\n');
    const hash = createHash('sha256').update(text).digest('hex');
    return { ...this.report, ms: Math.round(performance.now() - startedMs), task: this.#task, hash, length: text.length };
  }

  /** One request and its stream. Resolves with the wait before the next one. */
  async #request() {
    const isSend = this.#task === undefined;
    const [method, params] = isSend ? ['message/stream', { message: this.#message }] : ['tasks/resubscribe', { id: this.#task }];
    const abort = new AbortController();
    let timer = setTimeout(() => abort.abort(), SILENCE_MS_MAX);
    try {
      const headers = { 'content-type': 'application/json', ...(this.#cursor && { 'last-event-id': this.#cursor }) };
      const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params });
      const response = await fetch(url, { method: 'POST', headers, body, signal: abort.signal });
      if (!response.ok) return this.#rejected(response);
      for await (const frame of frames(response, abort.signal)) {
        clearTimeout(timer);
        timer = setTimeout(() => abort.abort(), SILENCE_MS_MAX);
        if (frame.event === 'drain') {
          this.report.drained += 1;
          return frame.retryMs;
        }
        this.#take(frame);
      }
      if (this.report.state === undefined) this.report.broken += 1;
    } catch (error) {
      // A broken stream is resumed. A request without any answer has failed.
      if (this.#cursor !== undefined && error.message === 'terminated') this.report.broken += 1;
      else this.report.failed.push(`${method}: ${error.cause?.code ?? error.name}`);
    } finally {
      clearTimeout(timer);
    }
    return RETRY_MS;
  }

  async #rejected(response) {
    const retryAfter = response.headers.get('retry-after');
    await response.body?.cancel();
    if (response.status === 503 && retryAfter !== null) this.report.refused += 1;
    else this.report.failed.push(`status ${response.status}`);
    return Number(retryAfter ?? 1) * 1_000;
  }

  #take({ event, id, data }) {
    if (event === 'gap') this.report.gaps += 1;
    if (id !== undefined) this.#cursor = id;
    if (data === '') return;
    const { result, error } = JSON.parse(data);
    if (error !== undefined) return this.report.failed.push(`error ${error.code}`);
    if (result === undefined) return;
    const nowMs = performance.now();
    if (this.#task !== undefined) this.report.silencesMs.push(Math.round(nowMs - this.#lastMs));
    this.#lastMs = nowMs;
    this.#task ??= result.kind === 'task' ? result.id : result.taskId;
    if (result.kind === 'artifact-update') {
      const { artifactId, name, parts } = result.artifact;
      if (!ANSWERS.includes(name)) return;
      const text = parts.map(part => part.text ?? '').join('');
      this.#artifacts.set(artifactId, result.append ? (this.#artifacts.get(artifactId) ?? '') + text : text);
    }
    if (!result.final) return;
    const { state, message } = result.status;
    const reason = result.metadata?.reason ?? message?.parts.map(part => part.text ?? '').join('');
    this.report.state = state === 'completed' ? state : `${state}: ${reason}`;
  }
}

async function worker() {
  for (;;) process.stdout.write(`${JSON.stringify(await new Question().answer())}\n`);
}

for (let n = 0; n < Number(workers); n++) worker();
process.once('SIGTERM', () => process.exit());
