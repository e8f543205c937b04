import { type A2AError, isTerminal, type TaskState } from '@hopline/a2a';

/** What the shell is told. README and `--help` say the same. */
export const EXIT = {
  /** The task has completed; for other commands: answered. */
  ok: 0,
  /** The task failed, was rejected or canceled, or the server refused what was asked. */
  failed: 1,
  usage: 2,
  unreachable: 3,
  /** The task waits for an answer (`ask --task`). */
  waiting: 4,
  /** Ctrl-C, SIGTERM, or nobody reads the output any more. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export function exitCodeOf(state: TaskState): ExitCode {
  if (state === 'TASK_STATE_COMPLETED') return EXIT.ok;
  return isTerminal(state) ? EXIT.failed : EXIT.waiting;
}

export function exitCodeOfError(error: A2AError): ExitCode {
  return error.code === 'UNAVAILABLE' ? EXIT.unreachable : EXIT.failed;
}
