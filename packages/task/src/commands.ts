import type { AgentInput, ChunkProvenance, ClientInput, Producer, RelayInput, TextInput } from '@hopline/events';

/** What the relay hands the decider: an input, or a run of tokens that the coalescer made of several text inputs. */
export type Command = ClientCommand | AgentCommand | TextRun | LostInputs | RelayInput;

export type ClientCommand = { kind: 'client'; taskId: string; input: ClientInput };

export type AgentCommand = { kind: 'agent'; from: Producer; input: Exclude<AgentInput, TextInput> };

export type TextRun = {
  kind: 'run';
  from: Producer;
  lane: string;
  text: string;
  /** The lane closes with this run: its chunk carries lastChunk. */
  last: boolean;
  /** Ordinal of the last token in the run. */
  n: number;
  chunk: ChunkProvenance;
};

/** Inputs of a producer were removed from the log before they were folded: what follows them would be a text with a hole. */
export type LostInputs = { kind: 'lost'; from: Producer };

/** Why an item made no fact. Counted by the relay, never silent (S2-32). */
export const REJECTION_REASONS = [
  'unknown task',
  'terminal',
  'duplicate message',
  'too many turns',
  'unknown lane',
  'closed lane',
  'foreign lane',
  'stale turn',
  'stale attempt',
  'not root',
  'unknown call',
  'ended call',
  'duplicate call',
  'no change',
  'illegal transition',
  'not waiting',
  'too large',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];
