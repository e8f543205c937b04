export type CheckArguments = {
  /** Files or folders whose tests run. Empty: all. */
  paths: string[];
  /** Only the checks that a developer runs while typing. */
  isQuick: boolean;
  isCovered: boolean;
};

/** Throws an Error for an option that does not exist, and for `--quick` with another argument. */
export function parseArguments(args: readonly string[]): CheckArguments {
  const options = args.filter(arg => arg.startsWith('-'));
  const unknown = options.find(option => option !== '--coverage' && option !== '--quick');
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}; see \`npm test -- --help\``);
  const isQuick = options.includes('--quick');
  if (isQuick && args.length > 1)
    throw new Error('--quick selects the tests itself: use it without paths and without --coverage');
  return { paths: args.filter(arg => !arg.startsWith('-')), isQuick, isCovered: options.includes('--coverage') };
}
