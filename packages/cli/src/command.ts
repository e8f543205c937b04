import type { Client } from '@hopline/client';
import type { OwnCommand } from '@hopline/local-cluster';
import type { Output } from '@hopline/terminal';
import type { Conversations } from './conversations.ts';

export type CommandContext = {
  client: Client;
  output: Output;
  json: boolean;
  url: string;
  /** Aborts when the user interrupts the command. The task continues. */
  signal: AbortSignal;
  conversations: Conversations;
  own: OwnCommand;
  /** A command that works here with the same server, for hints: arguments such as `follow TASK`. */
  commandLine(args: string): string;
};
