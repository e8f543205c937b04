const REDRAW_MS = 1000;
/** Without a terminal, a step that runs longer than this is printed once at its start. */
const SLOW_STEP_MS = 1500;

/**
 * Prints the progress of the set-up to stderr. On a terminal one line counts the seconds of all running steps; elsewhere a long
 * step has one line at its start and one at its end.
 * @param {{ isTTY?: boolean, write(text: string): unknown }} stream
 */
export function createProgress(stream, now = Date.now) {
  /** @type {Map<string, number>} label -> start, ms */
  const running = new Map();
  /** @type {NodeJS.Timeout | undefined} */
  let redraw;

  const draw = () => {
    const steps = [...running].map(([label, start]) => `${label} ${seconds(now() - start)}`);
    stream.write(`\r\x1b[2Khopline: ${steps.join(' · ')}`);
  };
  const clear = () => {
    if (stream.isTTY) stream.write('\r\x1b[2K');
  };
  const note = text => {
    clear();
    stream.write(`hopline: ${text}\n`);
  };

  /** @template T @param {string} label @param {() => Promise<T>} work @returns {Promise<T>} */
  const step = async (label, work) => {
    const start = now();
    running.set(label, start);
    if (stream.isTTY) redraw ??= setInterval(draw, REDRAW_MS).unref();
    const firstNote = stream.isTTY ? undefined : setTimeout(() => note(`${label} …`), SLOW_STEP_MS).unref();
    try {
      const result = await work();
      note(`${label}: done in ${seconds(now() - start)}`);
      return result;
    } finally {
      clearTimeout(firstNote);
      running.delete(label);
      if (running.size === 0) {
        clearInterval(redraw);
        redraw = undefined;
      }
    }
  };
  return { note, step };
}

/** @param {number} ms */
function seconds(ms) {
  return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}
