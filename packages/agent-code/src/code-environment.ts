import { tmpdir } from 'node:os';
import type { CodeUser } from './code-user.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that every program may need: where programs and temporary files are, language, time zone, and the user's name and folder. */
const SYSTEM = ['PATH', 'TMPDIR', 'HOME', 'LOGNAME', 'SHELL', 'TERM', 'USER', 'LANG', 'LANGUAGE', 'TZ'];
const LOCALE = 'LC_';
/**
 * Variables of Node that neither hold a credential nor load a file as code. NODE_OPTIONS, NODE_DEBUG and NODE_TLS_REJECT_UNAUTHORIZED are
 * not among them, nor are proxy variables, whose values may contain a password. An entry that needs such a variable names it.
 */
const NODE = ['NODE_ENV', 'NODE_EXTRA_CA_CERTS', 'NODE_USE_SYSTEM_CA', 'NODE_COMPILE_CACHE', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];
/** Variables that describe the sub-agent's user; they would be wrong for any other user. */
const OF_USER = ['HOME', 'LOGNAME', 'USER', 'NODE_COMPILE_CACHE'];

/** The part of the sub-agent's environment that the code of an agent gets. `named`: the variables that its entry names. */
export function codeEnvironment(
  environment: Environment,
  named: readonly string[],
  user: CodeUser | undefined,
): Record<string, string> {
  const found: Record<string, string> = {};
  const names = [...SYSTEM, ...NODE, ...Object.keys(environment).filter(name => name.startsWith(LOCALE)), ...named];
  for (const name of names) {
    const value = environment[name];
    if (value !== undefined && (user === undefined || !OF_USER.includes(name) || named.includes(name))) found[name] = value;
  }
  if (user !== undefined) found.HOME ??= environment.TMPDIR ?? tmpdir();
  return found;
}
