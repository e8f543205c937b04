import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

export type StartOptions = {
  program: 'sh' | 'bash';
  cwd: string;
  env: NodeJS.ProcessEnv;
  /** The running processes, each the leader of its group. An interrupted test kills these groups. */
  running: Set<ChildProcess>;
  /** Longest wait for a text. */
  msMax: number;
};

export type StartedCommand = {
  /** The text that the start waited for. */
  matched: RegExpExecArray;
  /** Its output and errors so far, without the colors of a terminal, which vite also writes where CI is set. */
  printed(): string;
  /** Waits until the output matches. */
  prints(wanted: RegExp): Promise<RegExpExecArray>;
  ended: Promise<unknown>;
  /** Sends Ctrl-C as a terminal does, to the whole group, and waits for the end. */
  stop(): Promise<void>;
};

/** Starts a command that runs until it is stopped, in its own process group, and resolves once it has printed text that matches. */
export async function startCommand(
  command: string,
  wanted: RegExp,
  { program, cwd, env, running, msMax }: StartOptions,
): Promise<StartedCommand> {
  const child = spawn(program, ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      child.emit('printed');
    });
  const ended = once(child, 'close').then(() => running.delete(child));
  const printed = () => stripVTControlCharacters(output);
  const prints = async (text: RegExp) => {
    const signal = AbortSignal.timeout(msMax);
    for (;;) {
      const matched = text.exec(printed());
      if (matched !== null) return matched;
      if (!running.has(child)) assert.fail(`${command} ended without ${text}:\n${printed()}`);
      await Promise.race([once(child, 'printed', { signal }), ended]).catch(() =>
        assert.fail(`${command} did not print ${text} in ${msMax} ms:\n${printed()}`),
      );
    }
  };
  const stop = async () => {
    process.kill(-child.pid!, 'SIGINT');
    await ended;
  };
  return { matched: await prints(wanted), printed, prints, ended, stop };
}
