import type { Client } from '@hopline/client';
import type { Output } from './output.ts';

/** What every command works with. */
export type CommandContext = {
  client: Client;
  output: Output;
  json: boolean;
  /** Aborts when the person wants to leave. The task goes on. */
  signal: AbortSignal;
  /** ` --url URL` for the commands that are shown; empty for the default. */
  urlOption: string;
};
