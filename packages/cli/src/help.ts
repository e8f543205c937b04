const COMMON = `
  --url URL       the server (HOPLINE_URL, default http://127.0.0.1:8000/)
  --json          one JSON object per line
  --help          this text
`;

const EXIT_CODES = `
Exit codes: 0 completed, 1 the task failed or the server rejected the request, 2 usage, 3 the server cannot be reached, 4 the task waits
for input, 130 interrupted. Ctrl-C leaves the task running and prints the command that follows it.
`;

const OVERVIEW = `hopline COMMAND [options]     sends questions to agents over A2A and follows their answers

  ask [TEXT]      sends a question and prints the answer as it arrives
  follow TASK     prints the stream of a task, from the beginning or after a cursor
  list            lists your tasks, newest first
  get TASK        prints the current answer of a task
  cancel TASK     cancels a task
  trace TASK      prints where a task spent its time and whether anything was lost; reads NATS directly
  card            prints the name, address and skills of the server
  agent FILE      runs your own agent in the local cluster

hopline COMMAND --help describes the options of a command. The answer goes to standard output, everything else to standard error; states
and progress only on a terminal.

Environment: HOPLINE_URL the server; HOPLINE_TOKEN sent as \`authorization: Bearer …\`; HOPLINE_API_KEY sent as \`x-api-key\`; NO_COLOR disables colors.
`;

export const HELP = {
  '': OVERVIEW,
  ask: `hopline ask [TEXT|-] [options]     sends a question and prints the answer as it arrives; without TEXT, or with -, reads standard input

  --agent NAME    the agent to ask; default: chosen by the skills of the agents
  --context ID    continues a conversation
  --task ID       replies to a task that waits for input${COMMON}${EXIT_CODES}`,
  follow: `hopline follow TASK [options]     prints the stream of a task until it ends; also of a task that has already ended

  --cursor C      starts after this cursor; an interrupted \`ask\` prints it, and --json prints it with every event${COMMON}${EXIT_CODES}`,
  list: `hopline list [options]     prints the id, time and state of your tasks, newest state first; --json prints whole tasks without history

  --context ID    tasks of one conversation
  --state STATE   tasks in one state: submitted, working, completed, failed, canceled, rejected, input-required, auth-required
  --limit N       maximum number of tasks, default 20${COMMON}`,
  get: `hopline get TASK [options]     prints the current answer of a task; --json prints the whole task\n${COMMON}`,
  cancel: `hopline cancel TASK [options]     cancels a task\n${COMMON}`,
  trace: `hopline trace TASK [options]     prints the inputs of each agent, the events that clients received, how long text was held, and the audit:
every input and its outcome. Prints numbers and names, never text. Reads NATS (NATS_URL, default: the local cluster of npm start); exit code 1
when an input is unaccounted for\n${COMMON}`,
  card: `hopline card [options]     prints the name, address and skills of the server; --json prints the agent card\n${COMMON}`,
  agent: `hopline agent FILE [options]     runs the agent that a module exports, as a process of the local cluster, until Ctrl-C

  --name NAME     name in the cluster; default: the name in the agent's definition
  --export NAME   the export that is the agent (default: default)${COMMON}
The cluster is the one at NATS_URL, or the one that \`npm start\` runs (HOPLINE_HOME).
`,
};
export type CommandName = Exclude<keyof typeof HELP, ''>;
