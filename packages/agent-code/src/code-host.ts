import type { Duplex } from 'node:stream';
import { setImmediate as nextLoopTurn } from 'node:timers/promises';
import { AbortableEvents, type Agent, type AgentEvent, EVENTS_AT_ONCE_MAX, isEnd, type Turn, turnLog } from '@hopline/agent';
import { inTrace, inWork, type Logger } from '@hopline/telemetry';
import { CodeSpans, collectSpans, inTurn } from './code-spans.ts';
import { FrameReader, frameOf } from './frames.ts';
import { HostSteps } from './host-steps.ts';
import {
  type Code,
  type FromHost,
  HOST_DESCRIPTION_CHARS_MAX,
  type LOG_LEVELS,
  LOG_LINE_CHARS_MAX,
  type ToHost,
} from './protocol.ts';
import { authorTextOf, causeOf, toThrown } from './thrown.ts';
import { TurnOutput } from './turn-output.ts';

type CodeHostOptions = {
  channel: Duplex;
  load: (code: Code, folder: string, onSkipped: () => void) => Promise<Agent>;
  /** Ends the process. */
  exit: (code: number) => void;
};

type Running = { abort: AbortController; output: TurnOutput; steps: HostSteps };

/** The host's side of the pipe: runs the turns of one agent for the sub-agent. */
export class CodeHost {
  readonly #options: CodeHostOptions;
  readonly #reader = new FrameReader(Number.POSITIVE_INFINITY);
  readonly #turns = new Map<number, Running>();
  readonly #spans = new CodeSpans((id, spans) => {
    if (this.#turns.has(id)) this.#send({ k: 'spans', id, spans });
  });
  #agent: Agent | undefined;

  constructor(options: CodeHostOptions) {
    this.#options = options;
    const { channel, exit } = options;
    channel.on('data', (chunk: Buffer) => {
      for (const document of this.#reader.read(chunk)) this.#take(JSON.parse(document.toString('utf8')) as ToHost);
    });
    // The sub-agent has ended, so the output of the code no longer has a reader.
    for (const event of ['end', 'close', 'error'] as const) channel.on(event, () => exit(0));
  }

  /** Shows the author an error that the code did not catch, and ends the process. */
  crash(error: unknown): void {
    this.#send({ k: 'crashed', text: authorTextOf(error) });
    this.#options.exit(1);
  }

  #take(frame: ToHost): void {
    switch (frame.k) {
      case 'load':
        void this.#load(frame);
        break;
      case 'turn':
        void this.#run(frame);
        break;
      case 'abort':
        this.#turns.get(frame.id)?.output.close();
        this.#turns.get(frame.id)?.abort.abort(frame.reason);
        this.#turns.get(frame.id)?.steps.close();
        break;
      case 'taken':
        this.#turns.get(frame.id)?.output.taken(frame.bytes);
        break;
      case 'step':
        this.#turns.get(frame.id)?.steps.answered(frame);
        break;
      case 'skills':
        void this.#answer(frame.id, agent => agent.skills());
        break;
      case 'cancel':
        void this.#answer(frame.id, agent => agent.cancelRemoteRun?.(frame.run, frame.trace));
        break;
      case 'ping':
        this.#send({ k: 'pong' });
        break;
      case 'close':
        void this.#close();
        break;
    }
  }

  async #load({ code, folder, traced }: Extract<ToHost, { k: 'load' }>): Promise<void> {
    try {
      const agent = await this.#options.load(code, folder, () => this.#send({ k: 'skipped' }));
      this.#agent = agent;
      // Runs after the module is loaded, because it may register an SDK of its own.
      if (traced) await collectSpans(this.#spans);
      const { name, reportsWork = false, repeatsText = false } = agent;
      const description = agent.description.slice(0, HOST_DESCRIPTION_CHARS_MAX);
      const traits = { reportsWork, repeatsText, cancels: agent.cancelRemoteRun !== undefined };
      this.#send({ k: 'loaded', ...(name !== undefined && { name }), description, ...traits });
    } catch (error) {
      const cause = causeOf(error);
      this.#send({ k: 'refused', error: toThrown(error), ...(cause !== undefined && { cause: toThrown(cause) }) });
    }
  }

  async #run({ id, turn: data, work }: Extract<ToHost, { k: 'turn' }>): Promise<void> {
    const abort = new AbortController();
    const output = new TurnOutput(events => this.#sendJson(`{"k":"events","id":${id},"events":${events}}`));
    const steps = new HostSteps(frame => {
      output.flush();
      this.#send({ id, ...frame });
    });
    this.#turns.set(id, { abort, output, steps });
    const turn: Turn = {
      ...data,
      signal: abort.signal,
      log: turnLog(this.#logger(id), data.taskId),
      showError: error => this.#send({ k: 'shown', id, text: authorTextOf(error) }),
      remoteRunBegan: run => {
        output.flush();
        this.#send({ k: 'run', id, run });
      },
      steps,
      modelRequestEnded: request => this.#send({ k: 'model-request', id, request }),
    };
    let thrown: { error: unknown } | undefined;
    try {
      // Spans of the code, and requests with its trace context, are below the span of the turn.
      const run = () => inTurn(id, () => pump(this.#agent as Agent, turn, output));
      await inTrace(data.trace, () => (work === undefined ? run() : inWork(work, run)));
      output.flush();
    } catch (error) {
      output.flush();
      thrown = { error };
    }
    this.#spans.flush(id);
    this.#turns.delete(id);
    this.#send({ k: 'over', id, ...(thrown && { error: toThrown(thrown.error) }) });
  }

  async #answer(id: number, ask: (agent: Agent) => unknown): Promise<void> {
    try {
      this.#send({ k: 'answer', id, value: await ask(this.#agent as Agent) });
    } catch (error) {
      this.#send({ k: 'answer', id, error: toThrown(error) });
    }
  }

  async #close(): Promise<void> {
    await this.#agent?.close();
    this.#options.exit(0);
  }

  #logger(id: number): Logger {
    const at =
      (level: (typeof LOG_LEVELS)[number]) =>
      (...args: unknown[]) =>
        void this.#send({ k: 'log', id, level, line: String(args.at(-1)).slice(0, LOG_LINE_CHARS_MAX) });
    const [debug, info, warn, error] = [at('debug'), at('info'), at('warn'), at('error')];
    const logger: Logger = { trace: debug, debug, info, warn, error, fatal: error, child: () => logger };
    return logger;
  }

  #send(frame: FromHost): number {
    return this.#sendJson(JSON.stringify(frame));
  }

  #sendJson(json: string): number {
    const frame = frameOf(json);
    this.#options.channel.write(frame);
    return frame.length - 4;
  }
}

/** Reads the agent as fast as the sub-agent takes its events, until an event ends the turn. */
async function pump(agent: Agent, turn: Turn, output: TurnOutput): Promise<void> {
  const start = (): AsyncIterable<AgentEvent | readonly AgentEvent[]> => agent.runBatches?.(turn) ?? agent.run(turn);
  const steps = new AbortableEvents(start, turn.signal);
  let atOnce = 0;
  try {
    for (;;) {
      const step = await steps.next();
      if (step.done === true) return;
      const events = Array.isArray(step.value) ? (step.value as readonly AgentEvent[]) : [step.value as AgentEvent];
      for (const event of events) {
        if (!output.hasRoomFor(event)) await output.ready();
        output.add(event);
        if (isEnd(event)) return;
      }
      atOnce += events.length;
      if (atOnce < EVENTS_AT_ONCE_MAX) continue;
      atOnce = 0;
      output.flush();
      await nextLoopTurn();
    }
  } finally {
    await steps.return();
  }
}
