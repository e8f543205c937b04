import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Address of the local cluster, unless its launcher is given another port. */
export const URL_DEFAULT = 'http://127.0.0.1:8000/';

const CHECKOUT = fileURLToPath(new URL('../../../', import.meta.url));
/** Published files are JavaScript. */
const IS_CHECKOUT = import.meta.url.endsWith('.ts');
/** The package `hopline` has the launcher beside this code. */
const HAS_LAUNCHER = existsSync(new URL('./launcher.mjs', import.meta.url));
/** Where package managers put the command in the folder of a project. */
const COMMAND_PATH = 'node_modules/.bin/hopline';

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
export function localCommand(cwd: string): LocalCommand {
  if (IS_CHECKOUT) {
    const tarballs = join(resolve(CHECKOUT), 'dist');
    const isHere = resolve(CHECKOUT) === resolve(cwd);
    const folder = isHere ? '' : ` --prefix ${shellQuoted(resolve(CHECKOUT))}`;
    // npm resolves `--output` relative to the folder in which it was called.
    const pack = `npm${folder} run pack${isHere ? '' : ` -- --output ${shellQuoted(tarballs)}`}`;
    return { prefix: `npm${folder} run -s hopline --`, start: `npm${folder} start`, tarballs: { folder: tarballs, pack } };
  }
  const prefix = installedCommand(fileURLToPath(import.meta.url), cwd);
  return { prefix, start: HAS_LAUNCHER ? `${prefix} dev` : undefined, tarballs: undefined };
}

/**
 * How to run the installed command that contains `file` from the folder `cwd`. No registry has the package, and a stranger who registers its name
 * must not be able to run code here. So the result never installs anything: with --no, npx only runs what is installed.
 */
export function installedCommand(file: string, cwd: string): string {
  const isInstalled = (folder: string) => existsSync(join(folder, COMMAND_PATH));
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    if (isInstalled(folder)) return 'npx --no hopline';
    if (folder === dirname(folder)) break;
  }
  // npx without --no installs into its cache, in which a second npx finds nothing that has no name in a registry.
  const [own] = /^.*(?=[/\\]node_modules[/\\])/.exec(file) ?? [];
  return own !== undefined && isInstalled(own) ? shellQuoted(join(own, COMMAND_PATH)) : 'hopline';
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
