import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** Where packages put it. */
const USUAL_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/snap/bin/chromium',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** What a user may run; undefined where no browser is. CHROMIUM_PATH names one. */
export function chromiumPath(): string | undefined {
  const named = process.env.CHROMIUM_PATH;
  return (named === undefined ? USUAL_PATHS : [named]).find(path => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const FLAGS = [
  '--headless',
  // Its pages are ours, and a container's root has no sandbox.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // By pipe, so that a browser ends with the test that started it, whatever ends that.
  '--remote-debugging-pipe',
];
const START_MS_MAX = 60_000;
const POLL_MS = 50;

type Params = Record<string, unknown>;
// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects, and fails where it is not there.
type Any = any;
type Message = { id?: number; method?: string; sessionId?: string; params?: Any; result?: Any; error?: { message: string } };

/** A browser without a window, with a profile of its own, driven by its DevTools protocol. */
export class Chromium implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #calls = new Map<number, PromiseWithResolvers<Any>>();
  readonly #pages = new Map<string, (message: Message) => void>();
  #lastId = 0;

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
    let text = '';
    (child.stdio[4] as Readable).setEncoding('utf8').on('data', (chunk: string) => {
      const messages = (text + chunk).split('\0');
      text = messages.pop()!;
      for (const message of messages) this.#take(JSON.parse(message) as Message);
    });
    // It breaks when the browser ends first, and the calls that wait are told so below.
    child.stdio[3]!.on('error', () => {});
    const gone = () => {
      for (const { reject } of this.#calls.values()) reject(new Error('the browser has ended'));
    };
    child.once('exit', gone).once('error', gone);
  }

  static async start(path: string): Promise<Chromium> {
    const folder = await mkdtemp(join(tmpdir(), 'chromium-'));
    const child = spawn(path, [...FLAGS, `--user-data-dir=${folder}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    const browser = new Chromium(child, folder);
    try {
      await within(START_MS_MAX, 'the browser did not start', browser.call('Browser.getVersion'));
      return browser;
    } catch (error) {
      await browser[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** A new page at an address, when it has loaded. */
  async open(url: string): Promise<Page> {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page((method, params) => this.call(method, params, sessionId));
    this.#pages.set(sessionId, message => page.take(message));
    await page.load(url);
    return page;
  }

  call(method: string, params: Params = {}, sessionId?: string): Promise<Any> {
    this.#lastId += 1;
    const waits = Promise.withResolvers<Any>();
    this.#calls.set(this.#lastId, waits);
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id: this.#lastId, method, params, sessionId })}\0`);
    return waits.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    }
    // Processes of its own may still write as they end.
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  #take(message: Message): void {
    const { id, sessionId = '', error, result } = message;
    const waits = id === undefined ? undefined : this.#calls.get(id);
    if (id !== undefined) this.#calls.delete(id);
    if (waits === undefined) this.#pages.get(sessionId)?.(message);
    else if (error === undefined) waits.resolve(result);
    else waits.reject(new Error(error.message));
  }
}

/** What a page has sent; header names as it wrote them. */
export type PageRequest = { method: string; url: string; headers: Record<string, string>; body: string };

export class Page {
  readonly requests: PageRequest[] = [];
  /** What its console says is wrong: exceptions that nobody caught, refusals by CORS or by its security policy. */
  readonly faults: string[] = [];
  readonly #call: (method: string, params?: Params) => Promise<Any>;
  readonly #loaded = Promise.withResolvers<void>();

  constructor(call: (method: string, params?: Params) => Promise<Any>) {
    this.#call = call;
  }

  async load(url: string): Promise<void> {
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await this.#call(`${domain}.enable`);
    await this.#call('Page.navigate', { url });
    await within(START_MS_MAX, `${url} did not load`, this.#loaded.promise);
  }

  take({ method, params }: Message): void {
    if (method === 'Page.loadEventFired') this.#loaded.resolve();
    if (method === 'Runtime.exceptionThrown') this.faults.push(params.exceptionDetails.exception?.description ?? 'an exception');
    if (method === 'Log.entryAdded' && params.entry.level === 'error') this.faults.push(params.entry.text);
    if (method === 'Network.requestWillBeSent') {
      const { method: verb, url, headers, postData = '' } = params.request;
      this.requests.push({ method: verb, url, headers, body: postData });
    }
  }

  /** Value of an expression, or of what it promises, as JSON carries it. Rejects with what it throws. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.#call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
      // Otherwise what the page's policy forbids would be allowed for as long as it runs.
      allowUnsafeEvalBlockedByCSP: false,
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as T;
  }

  /** Resolves when an expression is true. */
  async until(expression: string, withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    while (!(await this.evaluate<boolean>(`Boolean(${expression})`))) {
      if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${expression}; ${this.faults.join('; ')}`);
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    }
  }
}

async function within<T>(ms: number, otherwise: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(otherwise)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
