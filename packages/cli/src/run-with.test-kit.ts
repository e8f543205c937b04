import { run } from './run.ts';

/** Runs a command in a folder without a cluster, and collects what it prints. */
export async function runWith(
  folder: string,
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = {},
  isTTY = false,
) {
  const written = { out: '', err: '' };
  const code = await run(argv, {
    environment: { NO_COLOR: '1', HOPLINE_HOME: folder, ...environment },
    folder,
    stdin: process.stdin,
    stdout: {
      isTTY,
      write: text => {
        written.out += text;
      },
    },
    stderr: {
      isTTY,
      write: text => {
        written.err += text;
      },
    },
    signal: new AbortController().signal,
    takeInterrupts: () => {},
  });
  return { code, ...written };
}
