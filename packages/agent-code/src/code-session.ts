import type { Duplex } from 'node:stream';
import { inspect } from 'node:util';
import { AgentLost, AgentMisuse, type AgentSkill, type BegunStep, type Turn } from '@hopline/agent';
import type { ModelPrice } from '@hopline/chat-model/model-prices';
import { type ActiveWork, activeWork, type Logger, type RemoteSpan, spanContextFrom, workLinks } from '@hopline/telemetry';
import { FRAME_BYTES_MAX, FrameReader, frameOf, ProtocolFault } from './frames.ts';
import { HostedTurn } from './hosted-turn.ts';
import { ModelRequests } from './model-requests.ts';
import { type Code, type CodeSpan, type FromHost, readFromHost, type Thrown, type ToHost, type TurnData } from './protocol.ts';
import { fromThrown, toThrown } from './thrown.ts';

/** The process of a host, and the pipe to it. */
export type HostLink = {
  channel: Duplex;
  /** Resolves with how the process ended. */
  ended: Promise<string>;
  /** Kills the process and what it started. */
  kill(): void;
};

export type SessionListeners = {
  logger: Logger;
  /** Name of the agent in log lines. */
  name: string;
  /** Shows an error of the code, or a sentence about its process, to its author only. */
  showAuthor: (error: unknown) => void;
  onSkipped: () => void;
  /** Exports a span of the code. Absent: nothing is traced. */
  exportSpan?: ((span: RemoteSpan) => void) | undefined;
  /** The price of a model that the code calls. Absent: the cost of its requests is unknown. */
  priceOf?: ((model: string) => ModelPrice | undefined) | undefined;
};

export type Loaded = Extract<FromHost, { k: 'loaded' }>;

/** How often a host is asked whether its event loop runs. */
export const PING_MS = 5_000;
/**
 * A host that does not answer for this long while it has turns or questions is killed, because code that never waits blocks all its turns.
 */
export const HOST_SILENCE_MS_MAX = 30_000;
/** The author reads that the code is still loading after this time. */
export const LOAD_SHOWN_MS = 10_000;
/** How long the pipe of a process that has ended is read. */
const LAST_BYTES_MS_MAX = 1_000;
/** Lines of `turn.log` and texts for the author that a host may send per second. */
const LINES_PER_S_MAX = 1_000;

/** One living host: its turns and its answers, until it ends or breaks the protocol. */
export class CodeSession {
  readonly #link: HostLink;
  readonly #listeners: SessionListeners;
  readonly #reader = new FrameReader(FRAME_BYTES_MAX);
  readonly #turns = new Map<number, { hosted: HostedTurn; turn: Turn; work: ActiveWork | undefined }>();
  readonly #modelRequests: ModelRequests;
  readonly #answers = new Map<number, { resolve: (value: unknown) => void; reject: (error: unknown) => void }>();
  readonly #loaded = Promise.withResolvers<Loaded>();
  readonly #ended = Promise.withResolvers<AgentLost>();
  #fault: AgentLost | undefined;
  #nextId = 1;
  #silentMs = 0;
  #linesLeft = LINES_PER_S_MAX;
  #linesLost = 0;
  readonly #timers: NodeJS.Timeout[];

  constructor(link: HostLink, listeners: SessionListeners) {
    this.#link = link;
    this.#listeners = listeners;
    this.#modelRequests = new ModelRequests(listeners.priceOf);
    this.#loaded.promise.catch(() => {});
    const { channel } = link;
    channel.on('data', (chunk: Buffer) => this.#read(chunk));
    for (const event of ['end', 'close', 'error'] as const) channel.on(event, () => this.#hostEnded());
    void link.ended.then(() => setTimeout(() => this.#hostEnded(), LAST_BYTES_MS_MAX).unref());
    this.#timers = [setInterval(() => this.#ping(), PING_MS).unref(), setInterval(() => this.#renewLines(), 1_000).unref()];
  }

  /** Resolves with why the host ended. */
  get ended(): Promise<AgentLost> {
    return this.#ended.promise;
  }

  /**
   * Loads the code. Rejects with one sentence if it exports no agent, with AgentLost if its process ends, or is killed because it has not loaded
   * the code within `msMax`.
   */
  async load(code: Code, folder: string, msMax: number): Promise<Loaded> {
    this.#send({ k: 'load', code, folder, traced: this.#listeners.exportSpan !== undefined });
    const file = code.adapter === 'module' ? code.path : code.module;
    const limit = `${msMax / 1_000} s (loadMsMax)`;
    const show = () =>
      this.#listeners.showAuthor(`${file} has been loading for ${LOAD_SHOWN_MS / 1_000} s; its process is ended after ${limit}`);
    const onLate = () => this.#lose(`did not load ${file} within ${limit}`, 'code_not_loaded');
    const timers = [setTimeout(onLate, msMax), setTimeout(show, LOAD_SHOWN_MS)];
    try {
      return await this.#loaded.promise;
    } finally {
      for (const timer of timers) clearTimeout(timer);
    }
  }

  begin(turn: Turn): { turn: HostedTurn; abort: (reason: unknown) => void } {
    const id = this.#nextId++;
    const hosted = new HostedTurn(bytes => this.#send({ k: 'taken', id, bytes }));
    if (this.#fault !== undefined) hosted.lost(this.#fault);
    else {
      const work = activeWork();
      this.#turns.set(id, { hosted, turn, work });
      this.#send({ k: 'turn', id, turn: dataOf(turn), ...(work && { work }) });
    }
    const abort = (reason: unknown) => {
      hosted.abort();
      if (!hosted.isOver) this.#send({ k: 'abort', id, ...(typeof reason === 'string' && { reason }) });
    };
    return { turn: hosted, abort };
  }

  async skills(): Promise<AgentSkill[]> {
    return (await this.#ask(id => ({ k: 'skills', id }))) as AgentSkill[];
  }

  async cancelRemoteRun(run: unknown, trace: Turn['trace']): Promise<void> {
    await this.#ask(id => ({ k: 'cancel', id, run, trace }));
  }

  /** Lets the agent close, and kills the host after `ms`. */
  async close(ms: number): Promise<void> {
    this.#send({ k: 'close' });
    const timer = setTimeout(() => this.#lose('was closed', 'code_closed'), ms);
    await this.#ended.promise;
    clearTimeout(timer);
    await this.#link.ended;
  }

  async #ask(question: (id: number) => ToHost): Promise<unknown> {
    if (this.#fault !== undefined) throw this.#fault;
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#answers.set(id, { resolve, reject });
    this.#send(question(id));
    return await promise;
  }

  #send(frame: ToHost): void {
    if (this.#fault === undefined) this.#link.channel.write(frameOf(JSON.stringify(frame)));
  }

  #read(chunk: Buffer): void {
    if (this.#fault !== undefined) return;
    try {
      for (const document of this.#reader.read(chunk)) this.#take(readFromHost(document), document.length);
    } catch (error) {
      if (!(error instanceof ProtocolFault)) throw error;
      this.#lose(`broke the protocol: ${error.message}`, 'code_violation');
    }
  }

  #take(frame: FromHost, bytes: number): void {
    this.#silentMs = 0;
    switch (frame.k) {
      case 'events':
        this.#turn(frame.id).arrived(frame.events, bytes);
        break;
      case 'over':
        this.#turn(frame.id).over(frame.error);
        this.#turns.delete(frame.id);
        break;
      case 'loaded':
        this.#loaded.resolve(frame);
        break;
      case 'refused':
        this.#loaded.reject(refusalOf(frame.error, frame.cause));
        break;
      case 'answer':
        this.#answer(frame);
        break;
      case 'run':
        this.#runBegan(frame.id, frame.run);
        break;
      case 'step-begin':
      case 'step-end':
        this.#step(frame);
        break;
      case 'model-request':
        this.#countModelRequest(frame);
        break;
      case 'spans':
        this.#exportSpans(frame);
        break;
      case 'log':
      case 'shown':
      case 'crashed':
      case 'skipped':
        this.#line(frame);
        break;
      case 'pong':
        break;
    }
  }

  #turn(id: number): HostedTurn {
    const running = this.#turns.get(id);
    if (running === undefined) throw new ProtocolFault('a frame names a turn that is not running');
    return running.hosted;
  }

  #runBegan(id: number, run: unknown): void {
    const running = this.#turns.get(id);
    if (running?.hosted.runBegan() !== true) return;
    try {
      running.turn.remoteRunBegan?.(run);
    } catch (error) {
      // The run fits into no record.
      running.hosted.fail(error);
    }
  }

  /** Throws ProtocolFault. A turn that has ended gets no answer. */
  #step(frame: Extract<FromHost, { k: 'step-begin' | 'step-end' }>): void {
    const running = this.#turns.get(frame.id);
    if (running?.hosted.stepAsked() !== true) return;
    const { hosted, turn } = running;
    const answer = (result: Omit<Extract<ToHost, { k: 'step' }>, 'k' | 'id'>) => {
      hosted.stepAnswered();
      this.#send({ k: 'step', id: frame.id, ...result });
    };
    stepOf(turn, frame).then(
      begun => answer(begun === undefined ? {} : { begun }),
      error => answer({ error: toThrown(error) }),
    );
  }

  /** A turn whose trace is not sampled has no spans, and one that has ended exports no more. */
  #exportSpans({ id, spans }: Extract<FromHost, { k: 'spans' }>): void {
    const { exportSpan } = this.#listeners;
    const running = this.#turns.get(id);
    const context = running && spanContextFrom(running.turn.trace);
    if (exportSpan === undefined || context === undefined || (context.traceFlags & 1) === 0) return;
    const { traceId } = context;
    const turnIds = workLinks(running?.work).flatMap(link => spanContextFrom(link)?.spanId ?? []);
    const linksOf = ({ parentSpanId }: CodeSpan) => (parentSpanId === context.spanId ? turnIds : []);
    for (const span of spans)
      if (running?.hosted.spanEnded() === true)
        exportSpan({ ...span, traceId, linkIds: linksOf(span), attributes: this.#modelRequests.withCost(span.attributes) });
  }

  #countModelRequest({ id, request }: Extract<FromHost, { k: 'model-request' }>): void {
    const running = this.#turns.get(id);
    if (running?.hosted.modelRequestEnded() !== true) return;
    const { turn, work } = running;
    if (turn.modelRequestEnded !== undefined) turn.modelRequestEnded(request);
    else this.#modelRequests.count(request, { work, trace: turn.trace });
  }

  #answer({ id, value, error }: Extract<FromHost, { k: 'answer' }>): void {
    const waiting = this.#answers.get(id);
    if (waiting === undefined) throw new ProtocolFault('a frame answers a question that was not asked');
    this.#answers.delete(id);
    if (error === undefined) waiting.resolve(value);
    else waiting.reject(fromThrown(error));
  }

  #line(frame: Extract<FromHost, { k: 'log' | 'shown' | 'crashed' | 'skipped' }>): void {
    if (this.#linesLeft === 0) {
      this.#linesLost += 1;
      return;
    }
    this.#linesLeft -= 1;
    const { name, logger, showAuthor, onSkipped } = this.#listeners;
    if (frame.k === 'skipped') onSkipped();
    else if (frame.k === 'crashed') {
      showAuthor(authorText(frame.text));
      showAuthor('nothing caught this error, so it has ended the process of the code; the turns that ran there run again');
    } else if (frame.k === 'shown') (this.#turns.get(frame.id)?.turn.showError ?? showAuthor)(authorText(frame.text));
    else {
      // The code may log after its turn has ended.
      const log = this.#turns.get(frame.id)?.turn.log;
      if (log === undefined) logger[frame.level]({ agent: name }, frame.line);
      else log[frame.level](asTemplate(frame.line));
    }
  }

  #renewLines(): void {
    if (this.#linesLost > 0) {
      const { logger, name } = this.#listeners;
      logger.warn({ agent: name, count: this.#linesLost }, 'lines of the agent were dropped: too many in one second');
    }
    this.#linesLost = 0;
    this.#linesLeft = LINES_PER_S_MAX;
  }

  #ping(): void {
    // An idle host need not answer.
    if (this.#turns.size === 0 && this.#answers.size === 0) {
      this.#silentMs = 0;
      return;
    }
    if (this.#silentMs >= HOST_SILENCE_MS_MAX) {
      this.#lose(`did not answer for ${HOST_SILENCE_MS_MAX / 1_000} s`, 'code_silent');
      return;
    }
    this.#silentMs += PING_MS;
    this.#send({ k: 'ping' });
  }

  #hostEnded(): void {
    this.#lose('ended', 'code_ended');
  }

  #lose(how: string, word: string): void {
    if (this.#fault !== undefined) return;
    const fault = new AgentLost(`the process of the agent's code ${how}`, word);
    this.#fault = fault;
    for (const timer of this.#timers) clearInterval(timer);
    this.#link.kill();
    this.#link.channel.destroy();
    for (const { hosted } of this.#turns.values()) hosted.lost(fault);
    for (const { reject } of this.#answers.values()) reject(fault);
    this.#turns.clear();
    this.#answers.clear();
    this.#loaded.reject(fault);
    this.#ended.resolve(fault);
  }
}

async function stepOf(
  { steps }: Turn,
  frame: Extract<FromHost, { k: 'step-begin' | 'step-end' }>,
): Promise<BegunStep | undefined> {
  if (steps === undefined) throw new AgentMisuse('this agent runs where steps cannot be stored');
  if (frame.k === 'step-begin') return await steps.begin(frame.step);
  await steps.end(frame.outcome);
  return undefined;
}

function dataOf({
  signal: _signal,
  log: _log,
  showError: _showError,
  toolTrace: _toolTrace,
  remoteRunBegan: _remoteRunBegan,
  steps: _steps,
  modelRequestEnded: _modelRequestEnded,
  modelFetch: _modelFetch,
  textSoFar: _textSoFar,
  ...data
}: Turn): TurnData {
  return data;
}

/** Text that the host has made from an error, printed unchanged. */
function authorText(text: string): Error {
  return Object.assign(new Error('an error of the agent'), { [inspect.custom]: () => text });
}

function refusalOf({ message }: Thrown, cause: Thrown | undefined): Error {
  return new Error(message, cause && { cause: fromThrown(cause) });
}

/** `turn.log` accepts only template literals, from which the host has made this line. */
function asTemplate(line: string): TemplateStringsArray {
  return Object.freeze(Object.assign([line], { raw: Object.freeze([line]) }));
}
