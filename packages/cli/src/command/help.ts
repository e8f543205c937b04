import { wrap } from '@hopline/terminal';
import type { Command } from './command.ts';
import { optionsOf } from './parse-arguments.ts';

/** Width in columns of help that is not printed on a terminal. */
const HELP_COLUMNS = 100;

const INTRODUCTION = 'Sends questions to agents over A2A and follows their answers.';
const OUTPUT =
  'hopline COMMAND --help describes the options of a command. The answer goes to standard output, everything else to standard error; ' +
  'states and progress appear only on a terminal.';
const ENVIRONMENT =
  'Environment: HOPLINE_URL the server; HOPLINE_TOKEN sent as `authorization: Bearer …`; ' +
  'HOPLINE_API_KEY sent as `x-api-key`, or as HOPLINE_AUTH_API_KEY_HEADER; ' +
  'NO_COLOR disables colors, FORCE_COLOR enables them in a pipe.';

/** The text of `--help`; ends with a line feed. */
export function overviewHelp(commands: readonly Command[], columns = HELP_COLUMNS): string {
  const summaries = commands.map(command => [usage(command), command.summary] as const);
  const lines = [
    ...wrap('hopline COMMAND [options]', columns),
    ...wrap(INTRODUCTION, columns),
    '',
    ...definitions(summaries, columns),
    ...definitions([['--version', 'prints the version']], columns, widthOf(summaries)),
    '',
    ...wrap(OUTPUT, columns),
    '',
    ...wrap(ENVIRONMENT, columns),
  ];
  return `${lines.join('\n')}\n`;
}

/** The text of `--help` of a command; ends with a line feed. */
export function commandHelp(command: Command, columns = HELP_COLUMNS): string {
  const { summary, details, notes } = command;
  const options = optionsOf(command).map(
    ([option, { value, short, help }]) =>
      [`${short === undefined ? '' : `-${short}, `}--${option}${value === undefined ? '' : ` ${value}`}`, help] as const,
  );
  const text = `${summary[0]!.toUpperCase()}${summary.slice(1)}${details === undefined ? '' : `; ${details}`}.`;
  const lines = [
    ...wrap(`hopline ${usage(command)} [options]`, columns),
    ...wrap(text, columns),
    '',
    ...definitions(options, columns),
    ...(notes === undefined ? [] : ['', ...wrap(notes, columns)]),
  ];
  return `${lines.join('\n')}\n`;
}

const usage = ({ name, subject }: Command) => (subject === undefined ? name : `${name} ${subject.usage}`);

type Definition = readonly [term: string, text: string];

const INDENT = 2;
const widthOf = (list: readonly Definition[]) => Math.max(...list.map(([term]) => term.length));

/** Terms and their texts in two columns, or below each other if the second column would be narrow. */
function definitions(list: readonly Definition[], columns: number, width = widthOf(list)): string[] {
  const left = INDENT + width + 2;
  const isNarrow = columns - left < 30;
  return list.flatMap(([term, text]) => {
    if (isNarrow) return [...wrap(term, columns, INDENT), ...wrap(text, columns, 2 * INDENT)];
    const [first = '', ...more] = wrap(text, columns - left);
    return [`${' '.repeat(INDENT)}${term.padEnd(width)}  ${first}`, ...more.map(line => `${' '.repeat(left)}${line}`)];
  });
}
