import type { Message, Metadata } from '@hopline/a2a';
import { NoAgentFits } from './planner.ts';

/** A client's choice of agents: `agent` of this cluster, and the `rest` of the path for the cluster behind that agent. */
type AgentPath = { agent: string; rest?: string };

type Request = { message: Message; metadata?: Metadata };

const SEPARATOR = '/';

/**
 * The path in `metadata.agent` of the message or, if it has none, of the request. Undefined if the client names no agent. Throws
 * NoAgentFits for any other value.
 */
export function agentPathOf(request: Request): AgentPath | undefined {
  if (!namesAgent(request)) return undefined;
  const path = parse(chosenBy(request));
  if (path === undefined)
    throw new NoAgentFits('an agent must be named by its name, or by names with "/" between them for agents of clusters below');
  return path;
}

/** Whether the client has chosen the agent, even in a form that is refused. */
export function namesAgent(request: Request): boolean {
  return (chosenBy(request) ?? undefined) !== undefined;
}

/**
 * The request for the agent of a call, with only the rest of the path, because a cluster behind the agent would refuse a message with a
 * name that it does not know.
 */
export function delegatedRequest({ message, metadata = {} }: Request): Request {
  const { metadata: ofMessage = {}, ...content } = message;
  const rest = parse(chosenBy({ message, metadata }))?.rest;
  const inMessage = ofMessage.agent != null;
  const sentInMessage = withAgent(ofMessage, inMessage ? rest : undefined);
  const sentInRequest = withAgent(metadata, inMessage ? undefined : rest);
  return {
    message: { ...content, ...(sentInMessage && { metadata: sentInMessage }) },
    ...(sentInRequest && { metadata: sentInRequest }),
  };
}

function chosenBy({ message, metadata }: Request): unknown {
  return message.metadata?.agent ?? metadata?.agent;
}

function parse(value: unknown): AgentPath | undefined {
  if (typeof value !== 'string' || value.split(SEPARATOR).includes('')) return undefined;
  const end = value.indexOf(SEPARATOR);
  return end < 0 ? { agent: value } : { agent: value.slice(0, end), rest: value.slice(end + 1) };
}

/** Undefined if no key is left. */
function withAgent({ agent: _consumed, ...others }: Metadata, agent: string | undefined): Metadata | undefined {
  const metadata = agent === undefined ? others : { ...others, agent };
  return Object.keys(metadata).length > 0 ? metadata : undefined;
}
