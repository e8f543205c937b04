import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Address of the local cluster, unless its launcher is given another port. */
export const URL_DEFAULT = 'http://127.0.0.1:8000/';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
/** Published files are JavaScript. */
const IS_CHECKOUT = import.meta.url.endsWith('.ts');
/** The package `hopline` has the launcher beside this code. */
const HAS_LAUNCHER = existsSync(new URL('./launcher.mjs', import.meta.url));

/** How the command is run here, for the command lines that hints print. */
export type LocalCommand = {
  /** Words before the arguments, such as `hopline`. */
  prefix: string;
  /** Command that starts a local cluster; undefined if this installation cannot start one. */
  start: string | undefined;
  /**
   * Folder for the tarballs of the public packages, which no registry has, and the command that writes them. Undefined outside a checkout.
   */
  tarballs: { folder: string; pack: string } | undefined;
};

/** `cwd` is the folder of the user. */
export function localCommand(environment: Readonly<Record<string, string | undefined>>, cwd: string): LocalCommand {
  if (IS_CHECKOUT) {
    const tarballs = join(resolve(CHECKOUT), 'dist');
    const isHere = resolve(CHECKOUT) === resolve(cwd);
    const folder = isHere ? '' : ` --prefix ${shellQuoted(resolve(CHECKOUT))}`;
    // npm resolves `--output` relative to the folder in which it was called.
    const pack = `npm${folder} run pack${isHere ? '' : ` -- --output ${shellQuoted(tarballs)}`}`;
    return { prefix: `npm${folder} run -s hopline --`, start: `npm${folder} start`, tarballs: { folder: tarballs, pack } };
  }
  // Set by `npx` and by the scripts of a package, whose commands are not on the PATH of a terminal. With --no, npx only runs an installed
  // package. No registry has this package, and a stranger who registers its name must not be able to run code here.
  const prefix = environment.npm_command === undefined ? 'hopline' : 'npx --no hopline';
  return { prefix, start: HAS_LAUNCHER ? `${prefix} dev` : undefined, tarballs: undefined };
}

/** Makes a command for hints from arguments such as `follow TASK`. It works here, with the server at `url`. */
export function commandLineFor({ prefix }: LocalCommand, url: string): (args: string) => string {
  const option = url === URL_DEFAULT ? '' : ` --url ${shellQuoted(url)}`;
  return args => `${prefix} ${args}${option}`;
}

/** Quotes a word for a POSIX shell. */
export function shellQuoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
