import {
  type AgentInput,
  type AgentStepInput,
  type AgentStepRecorded,
  type CallContent,
  type CallEnded,
  type CallState,
  type EndedInput,
  type Fact,
  isKnownFact,
  isVisible,
  type StepInput,
  type StepRecorded,
  type TaskAggregate,
} from '@hopline/events';
import type { RecordEntry } from './format.ts';

/**
 * A record as the owner of its task may read it: without the content that only services read (PROTOCOL.md sections 3 and 4). Removed are
 * the steps of the root producer, the content and resume state of calls, the end of a call, and the part of the agent from which an input
 * comes. Content for clients is unchanged. The header of such a file has `services` in `redacted`.
 */
export function withheldFromOwner(entry: RecordEntry): RecordEntry {
  if (entry.kind === 'facts') {
    const { record } = entry;
    const facts = record.facts.filter(isKnownOrVisible).map(withheldFact);
    return { ...entry, record: { ...record, facts, aggregate: withheldAggregate(record.aggregate) } };
  }
  const { record } = entry;
  return 'inputs' in record ? { ...entry, record: { ...record, inputs: record.inputs.map(withheldInput) } } : entry;
}

/**
 * A later version may store facts of other kinds, which this version cannot interpret. Facts without an event are for services. Clients see
 * all others anyway, and without them the generations would have a gap.
 */
function isKnownOrVisible(fact: Fact): boolean {
  return isVisible(fact) || isKnownFact(fact);
}

function withheldInput(input: AgentInput): AgentInput {
  switch (input.kind) {
    case 'step':
      return withoutPayload(input);
    case 'remote-run':
      return { ...input, run: null };
    case 'agent-step':
      return withoutOutcome(input);
    case 'call':
      return withoutWork(input);
    case 'ended':
      return withoutContent(input);
    case 'status': {
      const { resume: _resume, source: _source, ...shown } = input;
      return shown;
    }
    case 'open':
    case 'artifact': {
      const { source: _source, ...shown } = input;
      return shown;
    }
    default:
      return input;
  }
}

function withheldFact(fact: Fact): Fact {
  switch (fact.kind) {
    case 'step.recorded':
      return withoutPayload(fact);
    case 'remote-run.started':
      return { ...fact, run: null };
    case 'agent-step.recorded':
      return withoutOutcome(fact);
    case 'call.started':
      return withoutWork(fact);
    case 'call.ended':
      return withoutContent(fact);
    case 'status.changed': {
      const { resume: _resume, source: _source, ...shown } = fact;
      return shown;
    }
    case 'lane.opened':
    case 'artifact.updated': {
      const { source: _source, ...shown } = fact;
      return shown;
    }
    default:
      return fact;
  }
}

/** The state of a call that waits for credentials includes the `resume` value that its agent gets back. */
function withheldAggregate(aggregate: TaskAggregate): TaskAggregate {
  const calls = Object.entries(aggregate.calls).map(([id, call]) => [id, withoutResume(call)] as const);
  return { ...aggregate, calls: Object.fromEntries(calls) };
}

function withoutResume({ authRequest, ...call }: CallState): CallState {
  if (authRequest === undefined) return call;
  const { resume: _resume, ...shown } = authRequest;
  return { ...call, authRequest: shown };
}

function withoutPayload<S extends StepInput | StepRecorded>(step: S): S {
  return { ...step, payload: null };
}

function withoutOutcome<S extends AgentStepInput | AgentStepRecorded>({ outcome: _outcome, ...step }: S): Omit<S, 'outcome'> {
  return step;
}

function withoutWork<C extends Partial<CallContent>>(call: C): Omit<C, keyof CallContent> {
  const { presentation: _p, message: _m, metadata: _md, resume: _r, trace: _t, ...shown } = call;
  return shown;
}

function withoutContent<E extends EndedInput | CallEnded>(ended: E): E {
  const { message: _m, metadata: _md, history: _h, withheldText: _w, reason: _r, resume: _s, ...shown } = ended;
  return shown as E;
}
