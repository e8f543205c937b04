import { type Command, command, type Option, type Values } from './command.ts';
import { EXIT } from './exit-code.ts';
import { optionsOf } from './parse-arguments.ts';
import { oneOf } from './subjects.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const completion = command({
  name: 'completion',
  subject: oneOf('SHELL', 'bash, zsh or fish', SHELLS),
  summary: 'prints the completions for a shell: bash, zsh or fish',
  asksNoServer: true,
  options: {},
  notes:
    'bash: source <(hopline completion bash)   zsh: source <(hopline completion zsh)   fish: hopline completion fish | source',
  async run({ subject: shell }, { output, commands }) {
    // Printed like an answer, byte for byte, because a shell reads it.
    output.answer(completionScript(shell, commands));
    return EXIT.ok;
  },
});

/** The completion script of a shell. It is static: pressing Tab starts no process. */
export function completionScript(shell: (typeof SHELLS)[number], commands: readonly Command[]): string {
  const described = commands.map(one => ({ ...one, options: optionsOf(one), subjects: one.subject?.values }));
  return { bash, zsh, fish }[shell](described);
}

type Described = Pick<Command, 'name' | 'summary'> & { options: [name: string, Option][]; subjects: Values | undefined };

function bash(described: readonly Described[]): string {
  const cases = described.map(({ name, options, subjects }) => {
    const words = options.map(([option]) => `--${option}`).join(' ');
    return `    ${name}) options='${words}' subjects='${subjects === 'files' ? '' : (subjects ?? []).join(' ')}' files=${subjects === 'files' ? 1 : 0} ;;`;
  });
  const values = valuesOfOptions(described).map(([option, list]) =>
    list === 'files'
      ? `    --${option}) COMPREPLY=($(compgen -f -- "$current")); return ;;`
      : `    --${option}) COMPREPLY=($(compgen -W '${(list ?? []).join(' ')}' -- "$current")); return ;;`,
  );
  return `# bash completion of hopline: source <(hopline completion bash)
_hopline() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]}
  local options='' subjects='' files=0
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${described.map(({ name }) => name).join(' ')} --version --help' -- "$current"))
    return
  fi
  case $previous in
${values.join('\n')}
  esac
  case $command in
${cases.join('\n')}
  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) if [ "$files" -eq 1 ]; then COMPREPLY=($(compgen -f -- "$current")); else COMPREPLY=($(compgen -W "$subjects" -- "$current")); fi ;;
  esac
}
complete -o filenames -F _hopline hopline
`;
}

function zsh(described: readonly Described[]): string {
  const commands = described.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`);
  const cases = described.map(({ name, options, subjects }) => {
    const specs = options.map(([option, { value, help, values, multiple }]) => {
      const action = value === undefined ? '' : `:${value}:${actionOf(values)}`;
      return quoted(`${multiple ? '*' : ''}--${option}[${help.replaceAll(/[[\]:]/g, ' ')}]${action}`);
    });
    const subject = quoted(`:subject:${actionOf(subjects)}`);
    return `    ${name}) _arguments ${[...specs, subject].join(' ')} ;;`;
  });
  return `#compdef hopline
# zsh completion of hopline: source <(hopline completion zsh)
_hopline() {
  local -a commands
  commands=(
${commands.join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT -= 1 ))
  case $command in
${cases.join('\n')}
  esac
}
compdef _hopline hopline
`;
}

function fish(described: readonly Described[]): string {
  const lines = described.flatMap(({ name, summary, options, subjects }) => {
    const inCommand = `complete -c hopline -n '__fish_seen_subcommand_from ${name}'`;
    return [
      `complete -c hopline -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
      ...options.map(([option, { value, help, values }]) => {
        const argument =
          value === undefined
            ? ''
            : values === 'files'
              ? ' -r -F'
              : ` -x${values === undefined ? '' : ` -a '${values.join(' ')}'`}`;
        return `${inCommand} -l ${option}${argument} -d ${quoted(help)}`;
      }),
      ...(subjects === undefined ? [] : [`${inCommand} ${subjects === 'files' ? '-F' : `-a '${subjects.join(' ')}'`}`]),
    ];
  });
  return `# fish completion of hopline: hopline completion fish | source
complete -c hopline -f
complete -c hopline -n __fish_use_subcommand -l version -d 'prints the version'
${lines.join('\n')}
`;
}

/** Options with a value, by name. An option name means the same in every command, even if only some commands list its values. */
function valuesOfOptions(described: readonly Described[]): [string, Values | undefined][] {
  const found = new Map<string, Values | undefined>();
  for (const { options } of described)
    for (const [option, { value, values }] of options) if (value !== undefined) found.set(option, values ?? found.get(option));
  return [...found];
}

function actionOf(values: Values | undefined): string {
  return values === 'files' ? '_files' : values === undefined ? ' ' : `(${values.join(' ')})`;
}

/** Quotes a text with single quotes, as all three shells read them outside another quote; fish also interprets the backslash. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
