import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

/**
 * Runs command lines in one process, each as main.ts runs its own, because half of the CPU time of a command is loading its modules. JavaScript,
 * because the lowest Node reads no types. The process lasts as long as the channel to its parent, or whatever a command has left open.
 */
const installed = process.argv[2];
// Loaded by the first line, because a message that arrives before there is a listener is lost.
const loaded = import(pathToFileURL(join(installed, 'dist/packages/cli/src/run.js')).href);

/** `until`: source of a pattern. Once the output matches, the command is interrupted as by Ctrl-C. */
async function runLine({ args, stdin, until }) {
  const interruption = new AbortController();
  const written = { out: '', err: '' };
  let taken;
  const interrupt = () => (taken === undefined ? interruption.abort(new Error('interrupted')) : taken());
  const write = (stream, text) => {
    written[stream] += text;
    if (stream === 'out' && until !== undefined && new RegExp(until).test(written.out)) setImmediate(interrupt);
  };
  const { run } = await loaded;
  const code = await run(args, {
    environment: process.env,
    folder: process.cwd(),
    stdin: Readable.from([stdin]),
    stdout: { write: text => write('out', text) },
    stderr: { write: text => write('err', text) },
    signal: interruption.signal,
    takeInterrupts: interrupted => {
      taken = interrupted;
    },
  }).catch(error => {
    written.err += error.stack;
    return 1;
  });
  return { code, ...written };
}

process.on('message', async line => process.send(await runLine(line)));
