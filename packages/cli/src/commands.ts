import { stateWord, TASK_STATES } from '@hopline/a2a';

/** An option of a command. */
export type Option = {
  /** Its value in the help; absent: a flag without a value. */
  value?: string;
  short?: string;
  /** May be given several times. */
  multiple?: true;
  help: string;
  /** For completion: the only values, or that the value is a path. */
  values?: readonly string[] | 'files';
};

/** A command as its users see it. Parser, help, reference and completions are made of this table. */
export type Command = {
  /** Its subject in the help; absent: it takes none. */
  subject?: string;
  /** What an error asks for; `required`: the command does not run without it; `words`: of how many it consists, default 1; `many`: of any number. */
  subjectIs?: { text: string; required: boolean; words?: number; many?: true; values?: readonly string[] | 'files' };
  summary: string;
  /** Continues the summary in the help of the command. */
  details?: string;
  options: Readonly<Record<string, Option>>;
  /** It asks no server, so it takes no --url. */
  asksNoServer?: true;
  /** The end of its help. */
  notes?: string;
};

const STATES = TASK_STATES.map(stateWord);

const EXIT_CODES =
  'Exit codes: 0 completed, 1 the task failed or the server rejected the request, 2 usage, 3 the server cannot be reached, ' +
  '4 the task waits for input, 130 interrupted. Ctrl-C leaves the task running and prints the command that follows it.';

const TASK_ID = { text: 'one task id', required: true } as const;
const AGENT: Option = {
  value: 'NAME',
  help: 'the agent to ask, see `hopline agents`; default: chosen by the skills of the agents',
};
const CONTEXT: Option = { value: 'ID', help: 'continues a conversation' };
const CONTINUE: Option = { help: 'continues the last conversation with this server, with the same agent' };
const OUT: Option = {
  value: 'DIR',
  help: 'saves the files and data of the answer in this folder; replaces no file',
  values: 'files',
};
const ANSWER: Option = {
  value: 'NAME',
  multiple: true,
  help: "artifacts of this name are the answer, too; for servers without Hopline's names of artifacts",
};

const NATS: Option = {
  help: 'reads NATS (NATS_URL, default: the local cluster of `npm start`) instead of the server; for tasks of other callers',
};

const ALL: Option = { help: 'every task of the log' };
const ALL_SINCE: Option = { value: 'TIME', help: 'with --all: tasks that changed since then: 30s, 15m, 2h, 7d, or a date' };
const ALL_SAMPLE: Option = { value: 'N', help: 'with --all: N of them, chosen at random' };

const PACE: Option = {
  value: 'PACE',
  help: 'recorded (default), a factor such as 10x or 0.5x, or max: without waiting',
};

const LIST = {
  summary: 'lists your tasks, newest first',
  details:
    'prints id, local time of the last state, state, duration, agents, context, and the first words of the question or the reason of a ' +
    'failure; --json prints tasks without history and artifacts. `tasks` and `list` are the same command',
  options: {
    agent: { value: 'NAME', help: 'tasks of one agent' },
    context: { value: 'ID', help: 'tasks of one conversation' },
    state: { value: 'STATE', help: `tasks in one state: ${STATES.join(', ')}`, values: STATES },
    since: { value: 'TIME', help: 'tasks that changed since then: 30s, 15m, 2h, 7d, or a date' },
    limit: { value: 'N', help: 'maximum number of tasks, default 20' },
    text: { value: 'WORDS', help: 'tasks whose question, or reason of a failure, contains these words' },
    longer: { value: 'TIME', help: 'tasks that took longer: 500ms, 30s, 15m, 2h' },
    watch: { help: 'lists again every two seconds, until Ctrl-C; in a pipe it prints a task when it changes' },
  },
} as const satisfies Command;

export const COMMANDS = {
  ask: {
    subject: '[TEXT|-]',
    subjectIs: { text: 'one text (put it in quotes)', required: false },
    summary: 'sends a question and prints the answer as it arrives',
    details: 'without TEXT, or with -, reads standard input',
    options: {
      agent: AGENT,
      context: CONTEXT,
      continue: CONTINUE,
      task: { value: 'ID', help: 'replies to a task that waits for input' },
      out: OUT,
      answer: ANSWER,
    },
    notes: EXIT_CODES,
  },
  chat: {
    summary: 'asks question after question in one conversation',
    details: 'each line of standard input is a message',
    options: { agent: AGENT, context: CONTEXT, continue: CONTINUE, out: OUT, answer: ANSWER },
    notes:
      '/help lists the commands within a chat. Ctrl-C cancels the answer in progress; a second one leaves. ' +
      'Without a terminal, standard output has the answers alone, each ended by a line feed, and the exit code is that of the last one.',
  },
  follow: {
    subject: 'TASK',
    subjectIs: TASK_ID,
    summary: 'prints the stream of a task, from the beginning or after a cursor',
    details: 'until the task ends; also of a task that has already ended',
    options: {
      cursor: {
        value: 'C',
        help: 'starts after this cursor; an interrupted `ask` prints it, and --json prints it with every event',
      },
      out: OUT,
      answer: ANSWER,
    },
    notes: EXIT_CODES,
  },
  tasks: LIST,
  list: LIST,
  get: {
    subject: 'TASK',
    subjectIs: TASK_ID,
    summary: 'prints the current answer of a task',
    details: '--json prints the whole task',
    options: { out: OUT, answer: ANSWER },
  },
  cancel: { subject: 'TASK', subjectIs: TASK_ID, summary: 'cancels a task', options: {} },
  trace: {
    subject: 'TASK',
    subjectIs: TASK_ID,
    summary: 'prints where a task spent its time and whether anything was lost',
    details:
      'a waterfall of its hops, what each hop cost, takeovers, repeated attempts and gaps with their cause, the events that clients received, ' +
      'and the audit: every input and its outcome; numbers and names, never text; exit code 1 when an input is unaccounted for',
    options: {
      chunks: { help: 'prints every chunk; by default those of a long task are folded' },
      follow: {
        short: 'f',
        help: 'prints the trace again every two seconds until the task ends; in a pipe the events as they come',
      },
      html: {
        value: 'FILE',
        help: 'writes the trace as one page that needs nothing else, for people without a backend',
        values: 'files',
      },
      nats: NATS,
    },
  },
  export: {
    subject: 'TASK…',
    subjectIs: { text: 'one task id or several', required: true, many: true },
    summary: 'writes tasks as a file: every input and every fact, with its time',
    details:
      'to standard output, or to --output FILE; a file that was cut continues where it ends. A server leaves out what only services ' +
      'read; --nats reads everything',
    options: {
      output: {
        value: 'FILE',
        help: 'writes this file; continues it when it is the unfinished file of the same tasks',
        values: 'files',
      },
      inputs: { help: 'only what clients and agents wrote' },
      facts: { help: 'only what clients receive; without --inputs and --facts the file contains both' },
      redact: { help: 'replaces every text by filler of the same length and ids by pseudonyms; names, states and times stay' },
      nats: NATS,
    },
    notes: 'The format: packages/task-file/README.md. Files may be joined: cat a.hopline.jsonl b.hopline.jsonl.',
  },
  import: {
    subject: 'FILE',
    subjectIs: { text: 'one task file', required: true, values: 'files' },
    summary: 'stores the tasks of a file in a cluster, with new ids and a link to their origin',
    details:
      'clients then read them as they were recorded; nothing runs again. Writes to NATS: NATS_URL with credentials that may write facts, ' +
      'or the local cluster of `npm start`. The whole file is checked first',
    asksNoServer: true,
    options: {
      'same-ids': { help: 'keeps ids, contexts and owners; only into a cluster that has no facts' },
      'end-open': { help: 'tasks that have not ended end as canceled; without it they are refused' },
      tenant: { value: 'TENANT', help: 'tenant of the owner of the imported tasks; default: none, as without authentication' },
      subject: { value: 'SUBJECT', help: 'subject of that owner' },
    },
  },
  replay: {
    subject: 'TASK|FILE',
    subjectIs: { text: 'one task id or one task file', required: true, values: 'files' },
    summary: 'prints the stream of a task as it happened, from the server or from a file',
    details: 'nothing runs again. Of an unfinished file it prints what the file has',
    options: {
      pace: PACE,
      from: { value: 'C', help: 'starts after this cursor' },
      to: { value: 'C', help: 'ends with this cursor' },
      out: OUT,
      answer: ANSWER,
    },
    notes: EXIT_CODES,
  },
  serve: {
    subject: 'FILE…',
    subjectIs: { text: 'one task file or several', required: true, many: true, values: 'files' },
    summary: 'runs an A2A server that answers with recorded tasks, without agents, keys or NATS',
    details:
      'JSON-RPC, HTTP+JSON and gRPC in every version; a message gets the recording of the same text; recorded tasks are listed under ' +
      'their own ids',
    asksNoServer: true,
    options: {
      port: { value: 'N', help: 'port of HTTP, 0: a free one; default 8000' },
      'grpc-port': { value: 'N', help: 'port of gRPC; default: a free one' },
      host: { value: 'HOST', help: 'address to listen on, default 127.0.0.1' },
      pace: PACE,
      match: {
        value: 'RULE',
        help: 'text (default): another text is rejected, with the recorded ones; any: every message gets a recording, in turn',
        values: ['text', 'any'],
      },
      fault: {
        value: 'FAULTS',
        help:
          'cut=N cuts each stream after N frames, delay=MS delays each request, refuse=N answers the first N requests with 503; ' +
          'joined by commas. A request asks for its own with the header or the metadata hopline-fault',
      },
    },
    notes: 'Ctrl-C ends it. Answered tasks are kept in memory until then.',
  },
  why: {
    subject: 'TASK CURSOR',
    subjectIs: { text: 'one task id and the cursor of one of its events', required: true, words: 2 },
    summary: 'explains one event of a task: where it comes from, and where its time went',
    details:
      'the records it was made of, its producer and attempt, how long it was held and why it was released, when it was stored and by which relay; ' +
      'numbers and names, never text',
    options: { nats: NATS },
    notes: 'A cursor is the `id:` of an SSE frame; `hopline ask --json` and `hopline follow --json` print it with every event.',
  },
  verify: {
    subject: '[TASK|FILE…]',
    subjectIs: { text: 'task ids or task files', required: false, many: true },
    summary: "decides the inputs of tasks again with today's rules and compares the facts with the stored ones",
    details:
      'reads task files, and task ids from NATS (NATS_URL, default: the local cluster of `npm start`); prints each difference: the input, ' +
      'the fact, and the level (byte, semantic, outcome), and the counts; exit code 1 when a task differs, fails, or cannot be read',
    asksNoServer: true,
    options: {
      all: ALL,
      since: ALL_SINCE,
      sample: ALL_SAMPLE,
    },
    notes:
      'Tasks whose inputs retention has removed, or that were imported, prove nothing and are counted apart; one that is named is a ' +
      'failure. With --json the facts that differ are printed as they are: they contain text.',
  },
  'what-if': {
    subject: '[TASK|FILE…]',
    subjectIs: { text: 'task ids or task files', required: false, many: true },
    summary: 'prints how many frames and how much delay recorded tasks would have had under other settings of the coalescer',
    details:
      'replays task files, and tasks from NATS, on the clock on which their inputs were stored; appends take no time. Without --event-cost ' +
      'a few over its range',
    asksNoServer: true,
    options: {
      'event-cost': { value: 'N', multiple: true, help: 'HOPLINE_EVENT_COST_MS; may be repeated' },
      'hold-max': { value: 'MS', multiple: true, help: 'HOPLINE_HOLD_MS_MAX; may be repeated' },
      profile: {
        value: 'NAME',
        help: 'transparent: without what the supervisor adds (plan, notices, the whole answer once more)',
      },
      all: ALL,
      since: ALL_SINCE,
      sample: ALL_SAMPLE,
    },
  },
  diff: {
    subject: 'A B',
    subjectIs: { text: 'two task ids or task files', required: true, words: 2, many: true },
    summary: 'compares two tasks: states, calls, messages and artifacts, with times and numbers of tokens beside',
    details:
      'ids are read from NATS (NATS_URL, default: the local cluster of `npm start`), or export the tasks to files; exit code 1 when they ' +
      'differ. Ids, times and chunks make no difference',
    asksNoServer: true,
    options: {},
  },
  rerun: {
    subject: '[TASK…]',
    subjectIs: { text: 'task ids', required: false, many: true },
    summary: 'sends the messages of tasks again, as new tasks that refer to them',
    details:
      'the agents really run, with everything that they do outside; webhooks of the old task get nothing. A later message of a task is sent ' +
      'when the new one waits for an answer. Exit code 1 when a new task does not complete or, with --compare, differs',
    options: {
      yes: { help: 'required, because the agents are called' },
      agent: { value: 'NAME', help: 'this agent instead of the one that the messages name' },
      'from-turn': { value: 'N', help: 'starts with the N-th message of the task' },
      file: { value: 'FILE', help: 'reads task ids from this file, one a line', values: 'files' },
      compare: { help: 'prints whether states, calls and texts are the same, and times and tokens of both' },
    },
  },
  fork: {
    subject: 'TASK TEXT',
    subjectIs: { text: 'a task id and a text (put it in quotes)', required: true, words: 2, many: true },
    summary: 'continues a conversation from an earlier point, with another message',
    details:
      'a new task in a new context; its agents receive the messages of the task, and of those before it, up to the cursor. The task itself ' +
      'stays as it is. The agents really run, with everything that they do outside',
    options: {
      at: {
        value: 'CURSOR',
        help: 'required: the last event that counts, such as 17.42; `follow TASK --json` prints one with every event',
      },
      yes: { help: 'required, because the agents are called' },
      agent: { value: 'NAME', help: 'this agent instead of the one that the task names' },
      out: OUT,
      answer: ANSWER,
    },
    notes: EXIT_CODES,
  },
  agents: {
    summary: 'lists the agents of the server: name, state, skills',
    details: '* marks the agent for questions that fit no skill',
    options: {},
  },
  top: {
    summary: 'shows live tasks, rates, lag and agents, again every two seconds; q quits',
    details:
      'your open tasks and the agents of the server; for the cluster of `npm start` also the rates, lag, takeovers, and the load of each process, ' +
      'from their metrics; in a pipe, or with --json, one snapshot',
    options: {},
  },
  card: { summary: 'prints the name, address and skills of the server', details: '--json prints the agent card', options: {} },
  status: {
    summary: 'lists the processes and agents of the local cluster: process id, port, state, restarts',
    details: 'reads run.json in the home of `npm start` (HOPLINE_HOME); exit code 1 when a process is not ready',
    asksNoServer: true,
    options: {},
  },
  logs: {
    subject: '[SERVICE]',
    subjectIs: { text: 'one service, instance or agent', required: false },
    summary: 'prints the logs of the local cluster in the order of their times',
    details: 'of all services, or of one: ingress, relay-1, sub-agent, the name of an agent; --json prints the lines as they are',
    asksNoServer: true,
    options: {
      follow: { short: 'f', help: 'prints what is added, until Ctrl-C' },
      lines: { value: 'N', help: 'lines of the past, default 100' },
    },
  },
  backup: {
    subject: 'FOLDER',
    subjectIs: { text: 'one new folder', required: true, values: 'files' },
    summary: 'writes all streams of the log into a folder, while the cluster runs',
    details: 'as `nats stream backup` does, one folder for each stream; prints their messages and bytes',
    asksNoServer: true,
    options: {},
    notes:
      'Reads NATS (NATS_URL, default: the local cluster of `npm start`) as the user `admin`. The folder contains the texts of all tasks, ' +
      'and secrets of webhooks as HOPLINE_SECRETS_KEY has encrypted them.',
  },
  restore: {
    subject: 'FOLDER',
    subjectIs: { text: 'the folder of a backup', required: true, values: 'files' },
    summary: 'restores a backup into a NATS server without streams of Hopline',
    details:
      'checks the folder first; each stream gets HOPLINE_REPLICAS replicas; a restore that fails removes what it has restored',
    asksNoServer: true,
    options: {},
    notes: 'Needs NATS_URL and a user that may do everything. Start the relays afterwards: they would create empty streams.',
  },
  agent: {
    subject: 'FILE',
    subjectIs: { text: 'the file of an agent', required: true, values: 'files' },
    summary: 'runs your own agent in the local cluster',
    details: 'the agent that a module exports, as a process of the cluster, until Ctrl-C',
    asksNoServer: true,
    options: {
      name: { value: 'NAME', help: "name in the cluster; default: the name in the agent's definition" },
      export: { value: 'NAME', help: 'the export that is the agent (default: default)' },
      watch: { help: 'restarts the agent when a source in its folder changes; running turns end first' },
    },
    notes: 'The cluster is the one at NATS_URL, or the one that `npm start` runs (HOPLINE_HOME).',
  },
  new: {
    subject: 'agent NAME',
    subjectIs: { text: '`agent` and its name', required: true, words: 2 },
    summary: 'writes the folder of a new agent: TypeScript, a test, package.json',
    asksNoServer: true,
    options: {
      packages: {
        value: 'DIR',
        help: 'the folder with the tarballs of @hopline/agent and @hopline/cli, which no registry has yet; default: `dist` of the checkout, where `npm run pack` writes them',
        values: 'files',
      },
    },
  },
  completion: {
    subject: 'SHELL',
    subjectIs: { text: 'bash, zsh or fish', required: true, values: ['bash', 'zsh', 'fish'] },
    summary: 'prints the completions for a shell: bash, zsh or fish',
    asksNoServer: true,
    options: {},
    notes:
      'bash: source <(hopline completion bash)   zsh: source <(hopline completion zsh)   fish: hopline completion fish | source',
  },
} as const satisfies Record<string, Command>;

export type CommandName = keyof typeof COMMANDS;

/** Options of every command. */
const COMMON_OPTIONS = {
  url: { value: 'URL', help: 'the server (HOPLINE_URL, default http://127.0.0.1:8000/)' },
  json: { help: 'one JSON object per line' },
  help: { short: 'h', help: 'this text' },
} as const satisfies Record<string, Option>;

/** All options of a command, its own first. */
export function optionsOf(command: CommandName): Readonly<Record<string, Option>> {
  const { options, asksNoServer }: Command = COMMANDS[command];
  const { url, ...others } = COMMON_OPTIONS;
  return { ...options, ...(!asksNoServer && { url }), ...others };
}

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}
