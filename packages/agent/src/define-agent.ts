import { type Message, type Metadata, textOf } from '@hopline/a2a';
import { isAgentName } from '@hopline/events';
import { type Tracer, trace } from '@opentelemetry/api';
import type { Agent, AgentEvent, AgentSkill, Turn } from './agent.ts';
import { checkEvent } from './check-event.ts';
import { AgentMisuse, kindOf } from './misuse.ts';
import { NO_LOG, type TurnLog } from './turn-log.ts';

/** A turn as the author of an agent sees it. */
export type AgentTurn = {
  readonly message: Message;
  /** All text parts of the message, in order, joined by nothing (S1-6). */
  readonly text: string;
  /** Request-level metadata of the client. */
  readonly metadata: Metadata;
  /** Earlier messages of the conversation, oldest first. */
  readonly history: readonly Message[];
  /** What `needsInput` of the turn before left. */
  readonly resume: unknown;
  /** Aborts when the turn is over for whatever reason (cancelled, superseded, shutdown): hand it on to what you wait for. */
  readonly signal: AbortSignal;
  /** 1-based; a later attempt replaces what an earlier one said. */
  readonly attempt: number;
  /** The turn's span is active in `run`: spans that begin there are its children. */
  readonly tracer: Tracer;
  readonly log: TurnLog;
};

/** Skills may be written short; `id` is made of the name, `description` is the name, where they are not given. */
export type SkillDefinition = { name: string; id?: string; description?: string; tags?: string[]; examples?: string[] };

export type AgentDefinition = {
  /** a-z, 0-9 and -, at most 32: also the name by which it is asked (`metadata.agent`). */
  name: string;
  description: string;
  skills?: readonly (string | SkillDefinition)[];
  /** Yields strings (text of the answer, byte for byte) and what the constructors of the kit make. Running off its end is `done`; throwing is a failed turn. */
  run(turn: AgentTurn): AsyncIterable<string | AgentEvent>;
  close?(): Promise<void> | void;
};

export interface DefinedAgent extends Agent {
  readonly name: string;
}

const SCOPE = 'hopline.agent';

/** Makes an agent of a definition. Throws AgentMisuse that names the member that is wrong. */
export function defineAgent(definition: AgentDefinition): DefinedAgent {
  if (typeof definition !== 'object' || definition === null) throw new AgentMisuse(`the definition is ${kindOf(definition)}`);
  const { name, description, skills = [], run, close } = definition;
  if (typeof name !== 'string' || !isAgentName(name)) throw new AgentMisuse('name must be 1 to 32 of a-z, 0-9 and - (not first)');
  if (typeof description !== 'string' || description === '') throw new AgentMisuse('description must say what the agent does');
  if (typeof run !== 'function') throw new AgentMisuse(`run is ${kindOf(run)}; write async *run(turn) { … }`);
  if (!Array.isArray(skills)) throw new AgentMisuse(`skills is ${kindOf(skills)}, not an array`);
  const known = skills.map((skill, index) => skillOf(skill, index));
  return {
    name,
    description,
    skills: async () => known,
    run: turn => play(definition, turn),
    close: async () => close?.call(definition),
  };
}

async function* play(definition: AgentDefinition, turn: Turn): AsyncGenerator<AgentEvent> {
  const said: unknown = definition.run(agentTurn(turn));
  if (typeof said !== 'object' || said === null || !(Symbol.asyncIterator in said))
    throw new AgentMisuse(`run returned ${kindOf(said)}; write it as a generator: async *run(turn) { … }`);
  for await (const yielded of said as AsyncIterable<unknown>) yield checkEvent(yielded);
}

function agentTurn({ message, metadata, history, resume, signal, attempt, log = NO_LOG }: Turn): AgentTurn {
  const text = textOf(message.parts);
  return { message, text, metadata, history, resume, signal, attempt, tracer: trace.getTracer(SCOPE), log };
}

function skillOf(skill: unknown, index: number): AgentSkill {
  const given = (typeof skill === 'string' ? { name: skill } : skill) as SkillDefinition | null;
  const name = given?.name;
  if (typeof name !== 'string' || name === '') throw new AgentMisuse(`skills[${index}] needs a name`);
  const {
    id = name.toLowerCase().replace(/[^a-z0-9]+/g, '-'),
    description = name,
    tags = [],
    examples,
  } = given as SkillDefinition;
  for (const [field, list] of Object.entries({ tags, examples: examples ?? [] })) {
    if (!Array.isArray(list) || list.some(entry => typeof entry !== 'string'))
      throw new AgentMisuse(`skills[${index}].${field} must be a list of strings`);
  }
  if (typeof id !== 'string' || typeof description !== 'string')
    throw new AgentMisuse(`skills[${index}]: id and description are strings`);
  return { id, name, description, tags, ...(examples && { examples }) };
}
