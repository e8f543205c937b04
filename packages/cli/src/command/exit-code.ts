import { type A2AError, isTerminal, type TaskState } from '@hopline/a2a';

/** Exit codes of the command. The README and `--help` list the same codes. */
export const EXIT = {
  /** The task completed; for other commands: the request succeeded. */
  ok: 0,
  /** The task failed, was rejected or canceled, or the server rejected the request. */
  failed: 1,
  usage: 2,
  unreachable: 3,
  /** The task waits for input (`ask --task`). */
  waiting: 4,
  /** Ctrl-C, SIGTERM, or the reader of the output is gone. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The end of the help of a command whose exit code reports the state of a task. */
export const EXIT_CODES_NOTE =
  'Exit codes: 0 completed, 1 the task failed or the server rejected the request, 2 usage, 3 the server cannot be reached, ' +
  '4 the task waits for input, 130 interrupted. Ctrl-C leaves the task running and prints the command that follows it.';

export function exitCodeOf(state: TaskState): ExitCode {
  if (state === 'TASK_STATE_COMPLETED') return EXIT.ok;
  return isTerminal(state) ? EXIT.failed : EXIT.waiting;
}

export function exitCodeOfError(error: A2AError): ExitCode {
  return error.code === 'UNAVAILABLE' ? EXIT.unreachable : EXIT.failed;
}
