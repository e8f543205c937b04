import type { AgentInput, ChunkProvenance, ClientInput, Producer, RelayInput, Role, TextInput } from '@hopline/events';

/** A command to the decider: an input of the log, or a run of tokens that the coalescer made from several text inputs. */
export type Command = ClientCommand | AgentCommand | TextRun | LostInputs | UnreadableInput | RelayInput;

/** `server`: the role whose server appended it; absent for ingress, which serves all roles that clients may address there. */
export type ClientCommand = { kind: 'client'; taskId: string; input: ClientInput; server?: Role };

export type AgentCommand = { kind: 'agent'; from: Producer; input: Exclude<AgentInput, TextInput> };

export type TextRun = {
  kind: 'run';
  from: Producer;
  lane: string;
  text: string;
  /** The lane closes with this run: its chunk has lastChunk. */
  last: boolean;
  /** Ordinal of the last token in the run. */
  n: number;
  chunk: ChunkProvenance;
};

/** Retention removed inputs of a producer before they were folded, so later text would have a gap. */
export type LostInputs = { kind: 'lost'; from: Producer };

/** The relay failed on an input or on its decision, and the task cannot continue without that input. */
type UnreadableInput = { kind: 'unreadable' };

/** Why a command made no fact. The relay counts rejections by reason. */
export const REJECTION_REASONS = [
  'unknown task',
  'terminal',
  'duplicate message',
  'too many turns',
  'other generation',
  'question answered',
  'unknown lane',
  'closed lane',
  'other producer',
  'other agent',
  'stale turn',
  'stale attempt',
  'other item',
  'not root',
  'unknown call',
  'ended call',
  'duplicate call',
  'other call waits',
  'no change',
  'illegal transition',
  'not waiting',
  'too large',
  'unknown kind',
  'unreadable',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];
