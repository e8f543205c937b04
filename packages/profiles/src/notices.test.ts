import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codePoints } from '@hopline/a2a';
import { type NoticePhase, titleCase } from '@hopline/events';
import { CAIPE } from './caipe.ts';
import { CHAT } from './chat.ts';
import { callNotice, noticeStatus } from './notices.ts';
import { TOOL_NOTICES } from './tool-notices.ts';

function toolNotice(lane: string, agent: string, tool: string, callId: string, phase: NoticePhase) {
  return callNotice(TOOL_NOTICES, phase, { lane, agent, tool, callId });
}

test('the notices of a tool call have the form that clients expect [S2-1 S2-4 S2-5 S2-6 S2-37]', () => {
  assert.deepEqual(toolNotice('l/start', 'argocd', 'version_service__version', 'c1', 'start'), {
    kind: 'artifact',
    lane: 'l/start',
    artifact: {
      name: 'tool_notification_start',
      description: 'Tool call started: version_service__version',
      metadata: { sourceAgent: 'argocd', tool: 'version_service__version', toolCallId: 'c1' },
    },
    parts: [{ text: '🔧 Argocd: Calling tool: Version_Service__Version\n' }],
    append: false,
    last: true,
  });
  const end = toolNotice('l/end', 'argocd', 'version_service__version', 'c1', 'end');
  assert.equal(end.artifact.name, 'tool_notification_end');
  assert.equal(end.artifact.description, 'Tool call completed: version_service__version');
  assert.deepEqual(end.parts, [{ text: '✅ Argocd: Tool Version_Service__Version completed\n' }]);
  const failed = toolNotice('l/end', 'argocd', 'x', 'c1', 'failed');
  assert.equal(failed.artifact.name, 'tool_notification_end');
  assert.deepEqual(failed.parts, [{ text: '❌ Argocd: Tool X failed\n' }]);
  const waiting = toolNotice('l/end', 'argocd', 'x', 'c1', 'waiting');
  assert.equal(waiting.artifact.name, 'tool_notification_end');
  assert.deepEqual(waiting.parts, [{ text: '⏸️ Argocd: Tool X is waiting\n' }]);
  const { waiting: _none, ...recorded } = TOOL_NOTICES;
  assert.deepEqual(callNotice(recorded, 'waiting', { lane: 'l/end', agent: 'argocd', tool: 'x', callId: 'c1' }), waiting);
  const outcomes = [end, failed, waiting].map(({ artifact }) => [artifact.metadata?.failed, artifact.metadata?.waiting]);
  assert.deepEqual(outcomes, [
    [undefined, undefined],
    [true, undefined],
    [undefined, true],
  ]);
});

test('a rejected call has its own notice; a profile without one uses the notice of a failed call', () => {
  const options = { lane: 'l/end', agent: 'supervisor', tool: 'argocd', callId: 'c1' };
  const rejected = callNotice(CAIPE.calls, 'rejected', options);
  assert.deepEqual(rejected.parts, [{ text: '❌ Supervisor: Argocd rejected the message\n' }]);
  assert.equal(rejected.artifact.metadata?.failed, true);
  const { rejected: _none, ...custom } = CAIPE.calls;
  assert.deepEqual(callNotice(custom, 'rejected', options), callNotice(custom, 'failed', options));
});

test('the tool’s name is shown without markdown [S2-3]', () => {
  const notice = toolNotice('l', 'argocd', '**x_y**', 'c1', 'start');
  assert.deepEqual(notice.parts, [{ text: '🔧 Argocd: Calling tool: X_Y\n' }]);
  assert.equal(notice.artifact.metadata?.tool, 'x_y');
});

test('title case changes first letters only [S2-5]', () => {
  assert.equal(titleCase('version_service__version'), 'Version_Service__Version');
  assert.equal(titleCase('weather-eu'), 'Weather-Eu');
  assert.equal(titleCase('getURL'), 'GetURL');
});

test('the length of a notice follows from its names, in code points [S2-38 S2-39]', () => {
  const lengthOf = (tool: string, phase: 'start' | 'end') =>
    codePoints(toolNotice('l', 'argocd', tool, 'c', phase).parts[0]?.text ?? '');
  const tool = 'version_service__version';
  // The lengths 48 and 49 are those of the specified strings with title case and a line break. The diagram's 47 and 49 are wrong.
  assert.deepEqual([lengthOf(tool, 'start'), lengthOf(tool, 'end')], [48 + 1, 49 + 1]);
  assert.deepEqual([lengthOf(`${tool}_2`, 'start'), lengthOf(`${tool}_2`, 'end')], [48 + 3, 49 + 3]);
});

test('a notice as a status has the text, the metadata and one id in every attempt', () => {
  const notice = callNotice(CHAT.calls, 'start', { lane: '1/c/start', agent: 'supervisor', tool: 'argocd', callId: 'c' });
  assert.deepEqual(noticeStatus(notice, 'T'), {
    kind: 'status',
    state: 'TASK_STATE_WORKING',
    message: {
      messageId: '1/c/start-T',
      role: 'ROLE_AGENT',
      parts: [{ text: '🔧 Supervisor: Calling Agent Argocd...\n' }],
      metadata: { sourceAgent: 'supervisor', tool: 'argocd', toolCallId: 'c' },
    },
  });
});
