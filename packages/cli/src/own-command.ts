import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
/** Published files are JavaScript. */
const IS_CHECKOUT = import.meta.url.endsWith('.ts');

/** How this command is run here, for the commands that hints print. */
export type OwnCommand = {
  /** Such as `hopline`, before the arguments. */
  prefix: string;
  /** What starts a local cluster; undefined: this installation cannot. */
  start: string | undefined;
};

/** `cwd` is the folder of the user. */
export function ownCommand(environment: Readonly<Record<string, string | undefined>>, cwd: string): OwnCommand {
  if (IS_CHECKOUT) {
    const folder = resolve(CHECKOUT) === resolve(cwd) ? '' : ` --prefix ${shellQuoted(resolve(CHECKOUT))}`;
    return { prefix: `npm${folder} run -s hopline --`, start: `npm${folder} start` };
  }
  // Set by `npx` and `npm exec`; there the package need not be installed.
  return { prefix: environment.npm_command === 'exec' ? 'npx @hopline/cli' : 'hopline', start: undefined };
}

/** A word for a POSIX shell. */
export function shellQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
