import type { Part } from '@hopline/a2a';
import { textOfParts } from './conversation.ts';

type Body = {
  kind?: string;
  status?: { state?: string; message?: { parts?: readonly Part[] } };
  artifact?: { name?: string; parts?: readonly Part[] };
  parts?: readonly Part[];
};
type Frame = Body & { task?: Body; message?: Body; statusUpdate?: Body; artifactUpdate?: Body; result?: Body };

/** The part of a frame that distinguishes it from others of its task, on one line: its state, or its artifact and text. Other frames as JSON. */
export function frameText(frame: Frame): string {
  const { task, message, statusUpdate, artifactUpdate, result } = frame;
  const { status, artifact, parts } = task ?? message ?? statusUpdate ?? artifactUpdate ?? result ?? frame;
  const state = status?.state
    ?.replace(/^TASK_STATE_/, '')
    .replaceAll('_', '-')
    .toLowerCase();
  const text = textOfParts(artifact?.parts ?? status?.message?.parts ?? parts ?? []);
  const shown = [state, artifact?.name, text === '' ? undefined : JSON.stringify(text)].filter(one => one !== undefined);
  return shown.length === 0 ? JSON.stringify(frame) : shown.join('  ');
}
