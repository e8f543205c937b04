import type { Client } from '@hopline/client';
import type { Output } from './output.ts';

export type CommandContext = {
  client: Client;
  output: Output;
  json: boolean;
  /** Aborts when the user interrupts the command. The task continues. */
  signal: AbortSignal;
  /** ` --url URL` for printed commands; empty for the default URL. */
  urlOption: string;
};
