const COMMON = `
  --url URL       the server (HOPLINE_URL, default http://127.0.0.1:8000/)
  --json          one JSON object a line
  --help          this text
`;

const ENDS = `
Exit codes: 0 completed, 1 the task failed or the server refused, 2 usage, 3 the server cannot be reached, 4 the task waits for an answer,
130 interrupted. Ctrl-C leaves the task running and prints the command that follows it.
`;

const OVERVIEW = `hopline COMMAND [options]     asks agents over A2A, and comes back to what they say

  ask [TEXT]      asks, and prints the answer as it comes
  follow TASK     prints what a task says, from its beginning or from a cursor
  list            prints your tasks, the newest first
  get TASK        prints a task as it is now
  cancel TASK     cancels a task
  trace TASK      prints where the time of a task went, and whether anything was lost; asks NATS
  card            prints who the server is and what it can do
  agent FILE      runs an agent of your own in the cluster on this machine

hopline COMMAND --help says more. The answer goes to standard output, everything else to standard error; states and notices only on a terminal.

Environment: HOPLINE_URL the server; HOPLINE_TOKEN sent as \`authorization: Bearer …\`, HOPLINE_API_KEY as \`x-api-key\`; NO_COLOR no colours.
`;

export const HELP = {
  '': OVERVIEW,
  ask: `hopline ask [TEXT|-] [options]     asks, and prints the answer as it comes; without TEXT, or with -, reads it from standard input

  --agent NAME    the agent that shall answer; else the skills of the agents decide
  --context ID    goes on in a conversation
  --task ID       answers what a task asks for${COMMON}${ENDS}`,
  follow: `hopline follow TASK [options]     prints what a task says until it ends, also when it has ended already

  --cursor C      begins after this place in the task; \`ask\` prints it when it is interrupted, and --json with every event${COMMON}${ENDS}`,
  list: `hopline list [options]     prints your tasks: id, time and state, the newest state first; --json prints whole tasks without their history

  --context ID    those of a conversation
  --state STATE   those in a state: submitted, working, completed, failed, canceled, rejected, input-required, auth-required
  --limit N       at most so many, 20 by default${COMMON}`,
  get: `hopline get TASK [options]     prints what a task has answered so far; --json prints the whole task\n${COMMON}`,
  cancel: `hopline cancel TASK [options]     cancels a task\n${COMMON}`,
  trace: `hopline trace TASK [options]     prints what each agent said and when, what clients were shown and when, how long text was held, and the books:
what came in and what became of it. Numbers and names, never text. Asks NATS (NATS_URL, else the cluster that npm start runs); exit code 1 when something is unaccounted for\n${COMMON}`,
  card: `hopline card [options]     prints who the server is and what it can do; --json prints the card itself\n${COMMON}`,
  agent: `hopline agent FILE [options]     runs the agent that a module exports, as a process of the cluster on this machine, until Ctrl-C

  --name NAME     its name in the cluster; else the one of its definition
  --export NAME   the export that is the agent (default: default)${COMMON}
The cluster is the one of NATS_URL, else the one that \`npm start\` runs (HOPLINE_HOME).
`,
};
export type CommandName = Exclude<keyof typeof HELP, ''>;
