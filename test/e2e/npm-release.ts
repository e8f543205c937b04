import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const DRY_RUN = fileURLToPath(new URL('../../infra/release/dry-run.ts', import.meta.url));

export const NPM_UNREACHABLE = 'the npm registry cannot be reached';

export function isUnreachable({ stderr }: { stderr?: string }): boolean {
  return /E(?:NOTFOUND|AI_AGAIN|CONNREFUSED|TIMEDOUT)/.test(stderr ?? '');
}

/** What `npm run dry-run` has made and serves: packages and charts that no registry has yet. */
export class NpmRelease {
  readonly #process: ChildProcess;
  /** Text that the command has printed. */
  readonly printed: string;
  /** Address of its registry, with a slash at the end. */
  readonly url: string;

  private constructor(process: ChildProcess, printed: string, url: string) {
    this.#process = process;
    this.printed = printed;
    this.url = url;
  }

  /** Makes a release in `outFolder`. Resolves once its registry answers. */
  static async start(outFolder: string): Promise<NpmRelease> {
    const dryRun = spawn(process.execPath, [DRY_RUN, '--output', outFolder, '--port', '0'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    for await (const text of dryRun.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      printed += text;
      const url = /^Serving them at (\S+) until Ctrl-C/m.exec(printed)?.[1];
      if (url !== undefined) return new NpmRelease(dryRun, printed, url);
    }
    return assert.fail(`the dry run has ended: ${printed}`);
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGINT');
    await ended;
  }
}
