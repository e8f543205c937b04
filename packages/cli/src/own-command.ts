import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { URL_DEFAULT } from './arguments.ts';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
/** Published files are JavaScript. */
const IS_CHECKOUT = import.meta.url.endsWith('.ts');

/** How this command is run here, for the commands that hints print. */
export type OwnCommand = {
  /** Such as `hopline`, before the arguments. */
  prefix: string;
  /** What starts a local cluster; undefined: this installation cannot. */
  start: string | undefined;
  /** What writes the packages of this checkout, which no registry has, into `dist`; undefined: a registry has them. */
  pack: string | undefined;
};

/** `cwd` is the folder of the user. */
export function ownCommand(environment: Readonly<Record<string, string | undefined>>, cwd: string): OwnCommand {
  if (IS_CHECKOUT) {
    const folder = resolve(CHECKOUT) === resolve(cwd) ? '' : ` --prefix ${shellQuoted(resolve(CHECKOUT))}`;
    return { prefix: `npm${folder} run -s hopline --`, start: `npm${folder} start`, pack: `npm${folder} run pack` };
  }
  // Set by `npx` and by the scripts of a package, whose commands are not on the PATH of a terminal.
  return { prefix: environment.npm_command === undefined ? 'hopline' : 'npx @hopline/cli', start: undefined, pack: undefined };
}

/** Makes a command that works here with the server at `url`, for hints: of arguments such as `follow TASK`. */
export function commandLineFor({ prefix }: OwnCommand, url: string): (args: string) => string {
  const option = url === URL_DEFAULT ? '' : ` --url ${shellQuoted(url)}`;
  return args => `${prefix} ${args}${option}`;
}

/** A word for a POSIX shell. */
export function shellQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
