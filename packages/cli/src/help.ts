import { wrap } from '@hopline/terminal';
import { COMMANDS, type Command, type CommandName, optionsOf } from './commands.ts';

/** Width of help that is not printed on a terminal; columns. */
const HELP_COLUMNS = 100;

const INTRODUCTION = 'Sends questions to agents over A2A and follows their answers.';
const OUTPUT =
  'hopline COMMAND --help describes the options of a command. The answer goes to standard output, everything else to standard error; ' +
  'states and progress only on a terminal.';
const ENVIRONMENT =
  'Environment: HOPLINE_URL the server; HOPLINE_TOKEN sent as `authorization: Bearer …`; ' +
  'HOPLINE_API_KEY sent as `x-api-key`, or as HOPLINE_AUTH_API_KEY_HEADER; ' +
  'NO_COLOR disables colors, FORCE_COLOR enables them in a pipe.';

/** The text of `--help`, of a command or, for '', of all; ends with a line feed. */
export function helpText(command: CommandName | '', columns = HELP_COLUMNS): string {
  const lines = command === '' ? overview(columns) : commandHelp(command, COMMANDS[command], columns);
  return `${lines.join('\n')}\n`;
}

function overview(columns: number): string[] {
  const commands = Object.entries<Command>(COMMANDS).map(
    ([name, { subject, summary }]) => [usage(name, subject), summary] as const,
  );
  return [
    ...wrap('hopline COMMAND [options]', columns),
    ...wrap(INTRODUCTION, columns),
    '',
    ...definitions(commands, columns),
    ...definitions([['--version', 'prints the version']], columns, widthOf(commands)),
    '',
    ...wrap(OUTPUT, columns),
    '',
    ...wrap(ENVIRONMENT, columns),
  ];
}

function commandHelp(name: CommandName, { subject, summary, details, notes }: Command, columns: number): string[] {
  const options = Object.entries(optionsOf(name)).map(
    ([option, { value, short, help }]) =>
      [`${short === undefined ? '' : `-${short}, `}--${option}${value === undefined ? '' : ` ${value}`}`, help] as const,
  );
  const text = `${summary[0]!.toUpperCase()}${summary.slice(1)}${details === undefined ? '' : `; ${details}`}.`;
  return [
    ...wrap(`hopline ${usage(name, subject)} [options]`, columns),
    ...wrap(text, columns),
    '',
    ...definitions(options, columns),
    ...(notes === undefined ? [] : ['', ...wrap(notes, columns)]),
  ];
}

const usage = (name: string, subject: string | undefined) => (subject === undefined ? name : `${name} ${subject}`);

type Definition = readonly [term: string, text: string];

const INDENT = 2;
const widthOf = (list: readonly Definition[]) => Math.max(...list.map(([term]) => term.length));

/** Terms and their texts in two columns; below each other where the second column would be narrow. */
function definitions(list: readonly Definition[], columns: number, width = widthOf(list)): string[] {
  const left = INDENT + width + 2;
  const isNarrow = columns - left < 30;
  return list.flatMap(([term, text]) => {
    if (isNarrow) return [...wrap(term, columns, INDENT), ...wrap(text, columns, 2 * INDENT)];
    const [first = '', ...more] = wrap(text, columns - left);
    return [`${' '.repeat(INDENT)}${term.padEnd(width)}  ${first}`, ...more.map(line => `${' '.repeat(left)}${line}`)];
  });
}
