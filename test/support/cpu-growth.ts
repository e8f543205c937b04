/** CPU time that a measurement adds up, so that the clock's resolution does not matter. */
const SAMPLE_US = 30_000;
/** Work that takes this long is measured once. */
const LONG_US = 500_000;
const SAMPLES = 3;
const WARM_UP_RUNS = 10;
const WARM_UP_CHARACTERS = 256;

/**
 * How much more CPU time `work` takes for 16 times the input: about 16 if it is linear, 256 if it is quadratic. It does not count time of
 * other processes, and it compares two measurements of the same run, so the load of the machine does not affect the result. Compare it with
 * 64. Use it if `blocksRun` counts nothing, as within a regular expression. `charactersMax`: length of the larger input.
 */
export function cpuGrowth(
  inputOf: (characters: number) => string,
  charactersMax: number,
  work: (text: string) => unknown,
): number {
  // V8 interprets a regular expression at first, and compiles it when it runs again.
  for (let run = 0; run < WARM_UP_RUNS; run += 1) work(inputOf(WARM_UP_CHARACTERS));
  return cpuOf(inputOf(charactersMax), work) / cpuOf(inputOf(charactersMax / 16), work);
}

/** CPU microseconds of one call: the smallest of a few means. */
function cpuOf(text: string, work: (text: string) => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const before = process.cpuUsage();
    let spent = 0;
    let calls = 0;
    for (; spent < SAMPLE_US; calls += 1) {
      work(text);
      const { user, system } = process.cpuUsage(before);
      spent = user + system;
    }
    least = Math.min(least, spent / calls);
    if (spent > LONG_US) break;
  }
  return least;
}
