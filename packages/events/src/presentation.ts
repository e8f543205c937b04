import type { Metadata } from '@hopline/a2a';

/** The artifact a lane becomes. Clients expect these members on every chunk (S0-8). */
export type LaneArtifact = {
  /** Set where a profile fixes the id; otherwise the id is derived from the lane. Never the agent's own id. */
  id?: string;
  /** The artifact leaves the task when the task ends: followers of the stream see it, later reads of the task do not. */
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
 * Meaning of an artifact for clients and for a supervisor above. Its name decides, or `metadata.artifactKind` where no built-in profile has
 * the name; an artifact with neither is the agent's own.
 */
export type ArtifactKind = 'plan' | 'answer' | 'result' | 'call-start' | 'call-end' | 'progress';

/** `{agent}` and `{tool}` stand for the names: as they are in the description, in title case in the text. */
export type NoticeTemplate = { name: string; description: string; text: string };

/** Notices around a call: its start, and its end, well or not. */
export type NoticeTemplates = {
  start: NoticeTemplate;
  end: NoticeTemplate;
  failed: NoticeTemplate;
  /** The agent's turn ended with a question while the call was open. Absent in calls that were recorded before it existed. */
  waiting?: NoticeTemplate;
  /** The agent rejected the message. Absent: as `failed`. */
  rejected?: NoticeTemplate;
};

/**
 * How the work of a called agent shows to clients: the agent's part of the task's profile (packages/profiles). It is stored with the call,
 * so an agent needs no setting for profiles, and a later attempt shows its work the same way.
 */
export type AgentPresentation = {
  text:
    | {
        /** All text of the agent is one answer, in the artifact `artifact`. */
        as: 'answer';
        artifact: LaneArtifact;
        /** Kinds of the agent's artifacts by name, where the agent is itself a supervisor. */
        kinds: Readonly<Record<string, ArtifactKind>>;
        /** Name of the artifact that a plan of the agent's becomes. */
        nestedPlan: string;
      }
    /**
     * The agent's artifacts and messages pass; other text is `artifact`. `transitory`: it leaves the task, and a message with the
     * text stays.
     */
    | { as: 'own' | 'transitory'; artifact: LaneArtifact };
  /**
   * `status`: states with a message (`CallInput.statusPasses`); the agent also reports when it begins to work. Else one artifact that holds
   * the newest line.
   */
  progress: 'status' | { name: string; description?: string };
  notices: NoticeTemplates;
  /** Applies to every artifact that streams. */
  separateClose?: true;
};
