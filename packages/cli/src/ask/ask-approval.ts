import { type Part, readApprovalResponse } from '@hopline/a2a';
import { approvalResponse } from '@hopline/client';
import { withoutControls } from '@hopline/terminal';
import type { CommandContext } from '../command/command.ts';
import { ChatInput } from './chat-input.ts';
import type { StreamOutcome } from './stream-outcome.ts';

/**
 * Asks the person at the terminal whether the call that waits may run, and returns the parts of the answer. Undefined if no call waits, if
 * there is no terminal, or if the person leaves; the call then keeps waiting.
 */
export async function askApproval(
  { stdin, output, json, signal }: Pick<CommandContext, 'stdin' | 'output' | 'json' | 'signal'>,
  { approval }: StreamOutcome,
): Promise<Part[] | undefined> {
  if (approval === undefined || json || signal.aborted || !stdin.isTTY || stdin.readableEnded) return undefined;
  if (output.terminal === undefined) return undefined;
  const input = new ChatInput(stdin, output, { onInterrupt: () => input.close(), onLine: () => {} });
  const leave = () => input.close();
  signal.addEventListener('abort', leave, { once: true });
  try {
    const line = await input.next(`Run ${withoutControls(approval.tool)}? [y/N, or why not] `);
    if (line === undefined) return undefined;
    const { approved } = readApprovalResponse([{ text: line }], approval);
    const isReason = !approved && !/^\s*(?:n|no)?\s*$/i.test(line);
    return approvalResponse(approval, approved, isReason ? line : undefined);
  } finally {
    signal.removeEventListener('abort', leave);
    input.close();
  }
}
