import type { TaskState } from '@hopline/a2a/client';
import type { ViewFile, ViewQuestion, ViewText, ViewTool, ViewUsage } from './client-view.ts';

/** The writer and channel of a text, on each of its changes. */
export type TextLabel = Pick<ViewText, 'id' | 'channel' | 'agent' | 'callId'>;

/** One step from a view to the next. Encoders of other protocols consume these steps in order. */
export type ViewChange =
  | { kind: 'task'; taskId: string; contextId: string }
  | /** The client's answer to a question began the next turn. */ { kind: 'turn'; turn: number }
  | { kind: 'text'; text: TextLabel; delta: string }
  | /**
   * All text so far with this id is void and becomes `whole`, because a new attempt of its agent differs. An attempt that repeats the text
   * makes no change.
   */ { kind: 'text-restarted'; text: TextLabel; whole: string }
  | { kind: 'text-ended'; text: TextLabel }
  | { kind: 'tool-started'; tool: ViewTool }
  | /** The arguments of the call are known; an agent that does not show them makes no such change. */ {
      kind: 'tool-arguments';
      tool: ViewTool;
    }
  | { kind: 'tool-ended'; tool: ViewTool }
  | /** The file is complete. */ { kind: 'file'; file: ViewFile }
  | /** '' if the line was taken back. */ { kind: 'progress'; line: string; agent: string | undefined }
  | { kind: 'question'; question: ViewQuestion }
  | { kind: 'usage'; usage: ViewUsage }
  | /** Follows all other changes of its event. `reason`: why the turn did not succeed. */ {
      kind: 'state';
      state: TaskState;
      reason: string | undefined;
    }
  | /** Events have expired. The changes that follow make the view whole again. */ { kind: 'gap' };
