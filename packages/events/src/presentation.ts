import type { Metadata } from '@hopline/a2a';

/** The artifact that a lane becomes. Clients expect these members on every chunk (S0-8). */
export type LaneArtifact = {
  /** Set if the profile determines the id; otherwise the id is derived from the lane. It is never the agent's own id. */
  id?: string;
  /** The artifact is removed when the task ends: followers of the stream see it, but later reads of the task do not. */
  transitory?: true;
  /**
   * The first chunk never closes the artifact: clients know a stream by a first chunk that is not its last (S0-17). An answer of one chunk is
   * closed by an empty one (C-2).
   */
  separateClose?: true;
  name?: string;
  description?: string;
  metadata?: Metadata;
  extensions?: string[];
};

/**
 * Meaning of an artifact for clients and for a supervisor above. The kind follows from the artifact's name or, if no built-in profile uses
 * that name, from `metadata.artifactKind`. Without either of these it is the agent's own artifact.
 */
export type ArtifactKind = 'plan' | 'answer' | 'result' | 'call-start' | 'call-end' | 'progress';

/** `{agent}` and `{tool}` stand for the names, unchanged in the description and in title case in the text. */
export type NoticeTemplate = { name: string; description: string; text: string };

/** Notices of a call: at its start, and at its end, depending on its outcome. */
export type NoticeTemplates = {
  start: NoticeTemplate;
  end: NoticeTemplate;
  failed: NoticeTemplate;
  /**
   * For an agent whose turn ended with a question while the call was open. Absent from calls that were recorded before this member existed.
   */
  waiting?: NoticeTemplate;
  /** For an agent that rejected the message. Absent: `failed` is used. */
  rejected?: NoticeTemplate;
  /** Notices are statuses with a message. Absent: each notice is an artifact. */
  as?: 'status';
};

export type NoticePhase = Exclude<keyof NoticeTemplates, 'as'>;

/**
 * How clients see the work of a called agent: the agent's part of the task's profile (packages/profiles). It is stored with the call, so an
 * agent needs no setting for profiles, and a later attempt shows its work the same way.
 */
export type AgentPresentation = {
  text:
    | {
        /** All text of the agent is one answer, in the artifact `artifact`. */
        as: 'answer';
        artifact: LaneArtifact;
        /** Kinds of the agent's artifacts by name, for an agent that is itself a supervisor. */
        kinds: Readonly<Record<string, ArtifactKind>>;
        /**
         * Name of the artifact that shows the agent's own plan. Absent: plans, notices and progress of a server below are progress of the
         * agent.
         */
        nestedPlan?: string;
      }
    /**
     * The agent's artifacts and messages are passed on unchanged; other text becomes `artifact`. `transitory`: that artifact is removed at
     * the end of the task, and a message with the text remains.
     */
    | { as: 'own' | 'transitory'; artifact: LaneArtifact };
  /**
   * `status`: progress is a state with a message, and the agent also reports when it begins to work (`CallInput.statusPasses`). Otherwise
   * one artifact holds the newest line.
   */
  progress: 'status' | { name: string; description?: string };
  notices: NoticeTemplates;
  /** Applies to every artifact that streams. */
  separateClose?: true;
};
