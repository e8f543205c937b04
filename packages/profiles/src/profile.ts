import type { AgentPresentation, ArtifactKind, LaneArtifact, NoticeTemplates } from '@hopline/events';

/** Name and description of an artifact. `{supervisor}` in the description becomes the supervisor's display name. */
export type ArtifactHeader = { name: string; description?: string };

export type PlanArtifacts = { streaming: ArtifactHeader; complete: ArtifactHeader };

/** One agent receives the message. Its artifacts, states and messages are passed on, and the supervisor adds nothing. */
export type ForwardingProfile = ProfileBase & { turn: 'forward' };

/** The supervisor plans, calls agents, streams their text, and ends with the whole answer. */
export type ConductingProfile = ProfileBase & {
  turn: 'conduct';
  /** The plan while it is streamed, and the same artifact when it is complete. `status`: the complete plan is the message of a status. */
  plan: PlanArtifacts | 'status';
  /** Text of agents and of the supervisor while it is streamed. */
  answer: ArtifactHeader;
  /** The whole answer again, sent before the final state. Absent: the answer is sent only once. */
  result?: ArtifactHeader;
  /** Notices of a call to an agent: `{agent}` is the supervisor, `{tool}` the agent that is called. */
  calls: NoticeTemplates;
};

/** How clients see a task. Plain JSON, because a call stores the agent's part of it. */
export type Profile = ForwardingProfile | ConductingProfile;

type ProfileBase = {
  /** 1 to 32 of a-z, 0-9 and -. */
  name: string;
  /** Kinds of artifacts by name: those of this profile, and those of servers that an agent of the cluster may call. */
  kinds: Readonly<Record<string, ArtifactKind>>;
  agent: Omit<AgentPresentation, 'text' | 'separateClose'> & { text: AgentText };
  /** Set if clients recognize a stream by a first chunk that is not its last. */
  separateClose?: true;
};

type AgentText =
  /**
   * All text of the agent is one answer. The plan of a nested server stays a separate artifact, named `nestedPlan`. Without that name,
   * plans, notices and progress of a nested server are progress.
   */
  | { as: 'answer'; nestedPlan?: string }
  /** The agent's artifacts and messages are passed on. Any other text becomes this artifact. */
  | { as: 'own'; artifact: LaneArtifact }
  /** Like `own`, but this artifact is removed at the end of the task, and a message with its text remains. */
  | { as: 'transitory'; artifact: LaneArtifact };
