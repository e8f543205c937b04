import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The library as Debian (`apt-get install faketime`) and Fedora install it; HOPLINE_FAKETIME names another place. */
const PLACES = [
  process.env.HOPLINE_FAKETIME ?? '',
  `/usr/lib/${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}-linux-gnu/faketime/libfaketimeMT.so.1`,
  '/usr/lib64/faketime/libfaketimeMT.so.1',
];
/** Seconds after which the library reads its file again, and so the time until a step takes effect. */
const READ_EVERY_S = '1';

/** Path of libfaketime, which shifts the system clock for one process; undefined where it is not installed. */
export const FAKETIME = PLACES.find(path => path !== '' && existsSync(path));

/** The system clock of one process, as that process sees it. Its monotonic clock does not change, as on a machine whose clock is set. */
export class SteppedClock {
  readonly #file: string;

  constructor(folder: string, name: string) {
    this.#file = join(folder, `${name}.clock`);
    this.step(0);
  }

  /** Environment of the process. */
  get env(): Record<string, string> {
    return {
      LD_PRELOAD: FAKETIME!,
      FAKETIME_TIMESTAMP_FILE: this.#file,
      FAKETIME_CACHE_DURATION: READ_EVERY_S,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    };
  }

  /** Sets the clock `seconds` ahead of the real time, or behind it if negative. */
  step(seconds: number): void {
    writeFileSync(this.#file, `${seconds < 0 ? '' : '+'}${seconds}\n`);
  }
}
