import { stateWord, type Task, type TaskState } from '@hopline/a2a';
import type { CommandContext } from './command.ts';
import { noticePrinter } from './display.ts';
import { EXIT, type ExitCode } from './exit-code.ts';

export type ListOptions = {
  contextId: string | undefined;
  state: TaskState | undefined;
  /** Maximum number of tasks. */
  limit: number;
};

/** Largest page ([A2A 1.0] 3.1.4). */
const PAGE_SIZE_MAX = 100;

/** `hopline list`: prints the caller's tasks, newest status first, over as many pages as needed. */
export async function list(context: CommandContext, { contextId, state, limit }: ListOptions): Promise<ExitCode> {
  const { client, output, json, signal } = context;
  let pageToken: string | undefined;
  for (let left = limit; left > 0; ) {
    const page = await client.list({
      signal,
      onNotice: noticePrinter(output),
      pageSize: Math.min(left, PAGE_SIZE_MAX),
      historyLength: 0,
      ...(contextId !== undefined && { contextId }),
      ...(state !== undefined && { state }),
      ...(pageToken !== undefined && { pageToken }),
    });
    for (const task of page.tasks.slice(0, left)) output.line(json ? JSON.stringify(task) : lineOf(task));
    left -= page.tasks.length;
    pageToken = page.nextPageToken;
    if (pageToken === undefined) break;
  }
  return EXIT.ok;
}

function lineOf({ id, status }: Task): string {
  return `${id}  ${status.timestamp ?? '-'}  ${stateWord(status.state)}`;
}
