/**
 * The hops of a task show where its time goes. They are disjoint. For a text of an agent, the hops from `accept` to `socket` add up to the
 * time from the client's request to the socket, because each hop begins when the previous one ends. A hop that did not delay the end of the
 * turn, for example the hold of a chunk while its agent went on writing, has no share of the turn's critical path.
 */
type HopDefinition = {
  /** Value of the label `hop`. */
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** The service that records it; `trace` if it is computed only when a task is traced. */
  readonly measured: string;
  /** The unit that it counts. */
  readonly per: string;
  readonly meaning: string;
};

export const HOPS = [
  {
    name: 'accept',
    from: 'request received by the ingress',
    to: 'work item queued by the relay',
    measured: 'relay',
    per: 'turn',
    meaning: 'The message is checked, stored on `a2a.raw`, folded and stored as a fact.',
  },
  {
    name: 'work_queue',
    from: 'work item queued by the relay',
    to: 'taken by the supervisor, or by an agent that is addressed directly',
    measured: 'supervisor, sub-agent',
    per: 'turn',
    meaning: 'No supervisor had a free slot, or none was alive.',
  },
  {
    name: 'plan',
    from: 'taken by the supervisor',
    to: "call's work item queued",
    measured: 'supervisor',
    per: 'call',
    meaning: 'The supervisor reads the task, chooses agents, and stores the call before its work is queued.',
  },
  {
    name: 'agent_queue',
    from: "call's work item queued",
    to: 'taken by the sub-agent',
    measured: 'sub-agent',
    per: 'call',
    meaning: 'No process of the agent had a free slot, or none was alive.',
  },
  {
    name: 'agent',
    from: 'taken by the sub-agent',
    to: 'first token created, or the end of a turn without text',
    measured: 'sub-agent',
    per: 'turn of an agent',
    meaning: 'The agent, its model and its remote servers, without the time in tools.',
  },
  {
    name: 'tool',
    from: 'tool call began',
    to: 'tool call ended',
    measured: 'sub-agent',
    per: 'tool call',
    meaning: 'A tool of the agent.',
  },
  {
    name: 'talk',
    from: 'first token created',
    to: 'last token created',
    measured: 'sub-agent',
    per: 'attempt of an agent that has ended',
    meaning: 'The agent writes its text, without the time in tools.',
  },
  {
    name: 'finish',
    from: 'last token created',
    to: 'end of the agent written',
    measured: 'sub-agent',
    per: 'attempt of an agent that has ended',
    meaning: 'The agent works on after its text, without the time in tools.',
  },
  {
    name: 'redelivery',
    from: 'last record of an attempt whose worker died or returned the work item; item queued, if it wrote none',
    to: 'taken by the next attempt',
    measured: 'sub-agent',
    per: 'attempt of an agent that follows one with output',
    meaning:
      'The work item waits to be delivered again. The supervisor and attempts without output are only in the trace of a task.',
  },
  {
    name: 'compose',
    from: "last call's end stored",
    to: "turn's end written",
    measured: 'supervisor',
    per: 'turn with calls',
    meaning: 'The supervisor composes the answer.',
  },
  {
    name: 'takeover',
    from: 'last record of the relay that died, or later input stored',
    to: 'first record of the next relay',
    measured: 'relay',
    per: 'task that another relay continues',
    meaning: 'No relay folds the task.',
  },
  {
    name: 'publish',
    from: "chunk's oldest token created",
    to: 'read by the relay',
    measured: 'relay',
    per: 'chunk',
    meaning: 'The token waits for the previous record, is stored on `a2a.raw` and delivered to the relay.',
  },
  {
    name: 'hold',
    from: 'read by the relay',
    to: 'released by the coalescer',
    measured: 'relay',
    per: 'chunk',
    meaning: 'Text is held so that several tokens become one event.',
  },
  {
    name: 'wait_for_append',
    from: 'released by the coalescer',
    to: 'its append begins',
    measured: 'relay',
    per: 'chunk',
    meaning: 'The previous append is still in flight.',
  },
  {
    name: 'append',
    from: 'its append begins',
    to: 'stored on `a2a.log`',
    measured: 'ingress, sub-agent',
    per: 'chunk delivered live',
    meaning: 'The log stores the fact. `hopline.append.duration` has every append, whether a client follows or not.',
  },
  {
    name: 'splice',
    from: 'stored on `a2a.log`',
    to: 'read by the feed of the server',
    measured: 'ingress, sub-agent',
    per: 'chunk delivered live',
    meaning: 'The log republishes the fact, and the server of a viewer reads it in order.',
  },
  {
    name: 'socket',
    from: 'read by the feed of the server',
    to: 'written to the first socket',
    measured: 'ingress, sub-agent',
    per: 'chunk delivered live',
    meaning: 'The event is encoded and written.',
  },
  {
    name: 'webhook',
    from: 'its append begins',
    to: 'accepted by the webhook',
    measured: 'notifier',
    per: 'notification',
    meaning: 'The delivery of a fact to a webhook, instead of `append`, `splice` and `socket`.',
  },
  // Only the trace of a task has these, because one process begins them and another one ends them.
  {
    name: 'silence',
    from: 'last record of an attempt that wrote no end; in a turn that still runs also its call, if it has no record',
    to: 'the client, the supervisor or a relay ended its work; now, in a turn that still runs',
    measured: 'trace',
    per: 'part of a critical path',
    meaning: 'The agent died or hung, and no other attempt followed.',
  },
  {
    name: 'client',
    from: 'request for input or credentials stored',
    to: 'next state of the same turn',
    measured: 'trace',
    per: 'part of a critical path',
    meaning: 'The turn waits for its client. Not a cost.',
  },
] as const satisfies readonly HopDefinition[];

type MeasuredHop = Exclude<(typeof HOPS)[number], { measured: 'trace' }>;
const isMeasured = (hop: (typeof HOPS)[number]): hop is MeasuredHop => hop.measured !== 'trace';

/** The hops of `hopline.hop.duration`. */
export const HOP_NAMES = HOPS.filter(isMeasured).map(({ name }) => name);

type OffPath = 'splice' | 'socket' | 'webhook' | 'client';
/** Hops that begin only after the end of the turn is stored, and the wait for the client. */
const OFF_PATH: readonly string[] = ['splice', 'socket', 'webhook', 'client'] satisfies OffPath[];
type PathHop = Exclude<(typeof HOPS)[number], { name: OffPath }>;
const isOnPath = (hop: (typeof HOPS)[number]): hop is PathHop => !OFF_PATH.includes(hop.name);

/** The hops of `hopline.path.time`. */
export const PATH_HOP_NAMES = HOPS.filter(isOnPath).map(({ name }) => name);
