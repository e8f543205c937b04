import type { ClientView, ViewText } from './client-view.ts';
import type { ViewChange } from './view-change.ts';

/** The changes that build the newest turn of a view from nothing in the fewest steps: plans, calls, answer, files, the state. */
export function changesOf(view: ClientView): ViewChange[] {
  const { taskId, contextId, turn, texts, tools, files, progress, question, usage, state, failure } = view;
  const current = texts.filter(({ isCurrent, text }) => isCurrent && text !== '');
  const ofTurn = tools.filter(tool => tool.turn === turn);
  return [
    ...(taskId === undefined ? [] : [{ kind: 'task' as const, taskId, contextId: contextId ?? '' }]),
    ...current.filter(({ channel }) => channel === 'plan').flatMap(textChanges),
    ...ofTurn.flatMap((tool): ViewChange[] => [
      { kind: 'tool-started', tool },
      ...(tool.arguments === undefined ? [] : [{ kind: 'tool-arguments' as const, tool }]),
      ...(tool.outcome === 'running' ? [] : [{ kind: 'tool-ended' as const, tool }]),
    ]),
    ...current.filter(({ channel }) => channel === 'answer').flatMap(textChanges),
    ...files.filter(file => file.turn === turn && file.isComplete).map(file => ({ kind: 'file' as const, file })),
    ...(usage === undefined ? [] : [{ kind: 'usage' as const, usage }]),
    ...(progress === undefined ? [] : [{ kind: 'progress' as const, line: progress, agent: undefined }]),
    ...(question === undefined ? [] : [{ kind: 'question' as const, question }]),
    { kind: 'state', state, reason: failure },
  ];
}

function textChanges({ id, channel, agent, callId, text, isComplete }: ViewText): ViewChange[] {
  const label = { id, channel, agent, callId };
  const delta: ViewChange = { kind: 'text', text: label, delta: text };
  return isComplete ? [delta, { kind: 'text-ended', text: label }] : [delta];
}
