/*
 * The lines of a task file (`*.hopline.jsonl`): a header, the records of one task, an end. A file holds one task or several, one after
 * the other. The README of this package specifies the format.
 */

import type { TaskState } from '@hopline/a2a';
import type { FactRecord, InputRecord, Owner, ProfileName, Role, TraceCarrier, Writer } from '@hopline/events';

export const TASK_FORMAT = 'hopline.task';
export const TASK_FORMAT_VERSION = 1;

/** Bytes of one line. A record of the log has at most the payload of NATS, 1 MiB by default. */
export const LINE_BYTES_MAX = 16 * 1024 * 1024;
/** Records of one task in a file. */
export const RECORDS_MAX = 50_000_000;

export type RecordKind = 'inputs' | 'facts';

/**
 * `services`: content that only services may read, such as the steps of a model. `text`: every text is filler of the same length, and every
 * id of a task, context, message, artifact or person is a pseudonym.
 */
export type Redaction = 'services' | 'text';

export type TaskHeader = {
  format: typeof TASK_FORMAT;
  version: number;
  /** Version of Hopline that wrote the file. */
  hopline: string;
  /** Epoch milliseconds. */
  exportedAt: number;
  taskId: string;
  contextId: string;
  role: Role;
  profile: ProfileName;
  owner?: Owner;
  /** Names of the agents that had taken part in the task by the time of the export. */
  agents: string[];
  contains: RecordKind[];
  /** Records whose beginning retention had removed. Absent: all are complete. */
  partial?: RecordKind[];
  /** Kinds of content removed from the records (`withheld.ts`, `redacted.ts`). Absent: none. */
  redacted?: Redaction[];
};

/** A record of `a2a.raw`, as stored. */
export type InputEntry = {
  kind: 'input';
  /** Raw sequence. */
  seq: number;
  /** Epoch milliseconds at which the log stored it. */
  storedAt: number;
  writer: Writer;
  record: InputRecord;
  trace?: TraceCarrier;
};

/** A record of `a2a.log`. Each fact appears once: copied facts are in the record that copied them. */
export type FactsEntry = {
  kind: 'facts';
  /** Log sequence. */
  seq: number;
  /** Epoch milliseconds at which the log stored it. */
  storedAt: number;
  /** Generation of the task after the record. Together with `seq` it is the cursor of the record's last event. */
  generation: number;
  record: FactRecord;
  trace?: TraceCarrier;
};

export type RecordEntry = InputEntry | FactsEntry;

/** The last line of a task, which a truncated file lacks. */
export type TaskEnd = {
  kind: 'end';
  /** Number of records. */
  inputs: number;
  facts: number;
  /** 0 if the file has no record. */
  lastInputSeq: number;
  lastFactsSeq: number;
  /** Generation of the newest record of facts, or of the task at the time of the export if the file contains no facts. */
  generation: number;
  state: TaskState;
};

/** Progress of reading or writing a task. */
export type TaskProgress = {
  /** Sum of the last line. */
  sum: string;
  inputs: number;
  facts: number;
  lastInputSeq: number;
  lastFactsSeq: number;
  generation: number;
  /** State after the newest record of facts. */
  state?: TaskState;
};

export type TaskEntry = { kind: 'header'; header: TaskHeader } | RecordEntry | TaskEnd;

/**
 * `not a task file`: the first line is not a header. `newer`: the format or a record is of a later version. `edited`: a line has a wrong
 * sum. `truncated`: the end is missing. `malformed`: a line has a form that no version writes. `too long`: a limit is exceeded.
 */
export type TaskFileFault = 'not a task file' | 'newer' | 'edited' | 'truncated' | 'malformed' | 'too long';

/** The file cannot be used. One sentence that names the line; never its content. */
export class TaskFileError extends Error {
  override readonly name = 'TaskFileError';
  readonly fault: TaskFileFault;
  /** 1-based; 0 for the file as a whole. */
  readonly line: number;

  constructor(fault: TaskFileFault, line: number, detail: string) {
    super(line > 0 ? `line ${line}: ${detail}` : detail);
    this.fault = fault;
    this.line = line;
  }
}
