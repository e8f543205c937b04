import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

/** Paths of common packages. */
const USUAL_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/snap/bin/chromium',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Why a test that needs a browser is skipped. */
export const NO_CHROMIUM = 'no Chromium: install one (apt-get install chromium), or name one in CHROMIUM_PATH';

/** Path of the browser: CHROMIUM_PATH or, if it is not set, the first browser that exists; undefined if there is none. */
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
  // The pages are trusted, and root in a container has no sandbox.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // With a pipe the browser ends with the test process, however that ends.
  '--remote-debugging-pipe',
];
const START_MS_MAX = 60_000;
const POLL_MS = 50;

type Params = Record<string, unknown>;
// biome-ignore lint/suspicious/noExplicitAny: a test fails where an expected member is missing.
type Any = any;
type Message = { id?: number; method?: string; sessionId?: string; params?: Any; result?: Any; error?: { message: string } };

/** A headless browser with a temporary profile, controlled by the DevTools protocol. */
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
    // The pipe breaks if the browser ends first; pending calls are rejected below.
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

  /** Opens a page and waits until it has loaded. */
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
    // The browser's child processes may still write while they end.
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

/** A request of a page; header names as sent. */
export type PageRequest = { method: string; url: string; headers: Record<string, string>; body: string };

export class Page {
  readonly requests: PageRequest[] = [];
  /** Console errors: uncaught exceptions, violations of CORS or of the security policy. */
  readonly faults: string[] = [];
  readonly #call: (method: string, params?: Params) => Promise<Any>;
  readonly #loaded = Promise.withResolvers<void>();

  constructor(call: (method: string, params?: Params) => Promise<Any>) {
    this.#call = call;
  }

  async load(url: string): Promise<void> {
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await this.#call(`${domain}.enable`);
    await this.#call('Performance.enable', { timeDomain: 'threadTicks' });
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

  /** The scheme of colors that the user prefers. */
  async setScheme(value: 'light' | 'dark'): Promise<void> {
    await this.#call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
  }

  /** Shows this page, which hides all other pages of the browser. */
  async bringToFront(): Promise<void> {
    await this.#call('Page.bringToFront');
  }

  /** The size of the window, in CSS pixels. */
  async setSize(width: number, height: number): Promise<void> {
    await this.#call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  }

  /** A picture of what the window shows. */
  async screenshot(format: 'png' | 'webp' = 'png'): Promise<Buffer> {
    const { data } = await this.#call('Page.captureScreenshot', { format, ...(format === 'webp' && { quality: 82 }) });
    return Buffer.from(data, 'base64');
  }

  /** CPU seconds of the page's main thread since it loaded, by name: `TaskDuration` (all), `ScriptDuration`, `LayoutDuration` … */
  async cpuSeconds(): Promise<Record<string, number>> {
    const { metrics } = await this.#call('Performance.getMetrics');
    return Object.fromEntries(metrics.map(({ name, value }: { name: string; value: number }) => [name, value]));
  }

  /** JSON value of an expression or of its promise. Rejects with what it throws. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.#call('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
      // By default the page's security policy would not apply while the expression runs.
      allowUnsafeEvalBlockedByCSP: false,
    });
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as T;
  }

  /** Waits until an expression is true. */
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
