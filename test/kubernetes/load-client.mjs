// Runs in a pod, in the image of Hopline. Asks one question repeatedly through the Service, and prints one line of JSON for each answer (with
// `state`), and for each question, refusal, failed request and long silence at the time when it happens (with `at`). SIGUSR2: no further questions.
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';

const { URL: url, QUESTION: question, WORKERS: workers, AGENT: agent, EXPECTED_FILE: expectedFile } = process.env;
/** The text of each artifact of an answer, if it is known. */
const expected = expectedFile ? readFileSync(expectedFile, 'utf8') : undefined;
const RETRY_MS = 200;
/** Silences from here on have a line of their own. */
const SHOWN_SILENCE_MS = 500;
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

function show(line) {
  process.stdout.write(`${JSON.stringify({ at: Date.now(), ...line })}\n`);
}

class Question {
  report = { ms: 0, refused: 0, failed: [], drained: 0, broken: 0, gaps: 0, silencesMs: [], state: undefined };
  #id = randomUUID();
  #message = {
    kind: 'message',
    role: 'user',
    messageId: this.#id,
    // With a context, a message that is sent again joins its task.
    contextId: randomUUID(),
    parts: [{ kind: 'text', text: question }],
    ...(agent && { metadata: { agent } }),
  };
  #artifacts = new Map();
  #task;
  #cursor;
  #lastMs = performance.now();

  async answer() {
    const startedMs = performance.now();
    const beganAt = Date.now();
    show({ asked: this.#id });
    while (this.report.state === undefined) {
      const waitMs = await this.#request();
      if (this.report.state === undefined) await new Promise(resolve => setTimeout(resolve, waitMs));
    }
    const text = [...this.#artifacts.values()].join('\n');
    const hash = createHash('sha256').update(text).digest('hex');
    const wrong = [...this.#artifacts.values()].filter(one => expected !== undefined && one !== expected);
    const ms = Math.round(performance.now() - startedMs);
    const times = { at: Date.now(), beganAt, ms };
    return {
      ...this.report,
      ...times,
      question: this.#id,
      task: this.#task,
      hash,
      length: text.length,
      ...(wrong.length > 0 && { wrong }),
    };
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
      else this.#fail(`${method}: ${error.cause?.code ?? error.name}`);
    } finally {
      clearTimeout(timer);
    }
    return RETRY_MS;
  }

  async #rejected(response) {
    const retryAfter = response.headers.get('retry-after');
    await response.body?.cancel();
    if (response.status === 503 && retryAfter !== null) this.#refuse();
    else this.#fail(`status ${response.status}`);
    return Number(retryAfter ?? 1) * 1_000;
  }

  #refuse() {
    this.report.refused += 1;
    show({ refused: this.#id });
  }

  #fail(reason) {
    this.report.failed.push(reason);
    show({ failed: reason, question: this.#id });
  }

  #take({ event, id, data }) {
    if (event === 'gap') this.report.gaps += 1;
    if (id !== undefined) this.#cursor = id;
    if (data === '') return;
    const { result, error } = JSON.parse(data);
    if (error !== undefined) {
      // The stream was open before the question was refused, so its status is 200.
      const isRefusal = error.data?.reason === 'UNAVAILABLE' && error.data.retryable === true;
      return isRefusal ? this.#refuse() : this.#fail(`error ${error.code} ${error.data?.reason ?? ''}`);
    }
    if (result === undefined) return;
    const nowMs = performance.now();
    if (this.#task !== undefined) {
      const silenceMs = Math.round(nowMs - this.#lastMs);
      this.report.silencesMs.push(silenceMs);
      if (silenceMs >= SHOWN_SILENCE_MS) show({ silenceMs, question: this.#id });
    }
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

let isEnding = false;
process.once('SIGTERM', () => process.exit());
process.once('SIGUSR2', () => {
  isEnding = true;
});

async function worker() {
  while (!isEnding) process.stdout.write(`${JSON.stringify(await new Question().answer())}\n`);
}

for (let n = 0; n < Number(workers); n++) worker();
