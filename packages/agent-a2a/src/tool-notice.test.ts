import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Metadata } from '@hopline/a2a';
import { noticeOfArtifact, noticeOfMetadata, noticeOfText } from './tool-notice.ts';

const never = () => false;
const always = () => true;

test('a notice is recognized by its whole text [S2-10 S2-3]', () => {
  for (const text of [
    '🔧 Calling tool: version_service__version',
    '🔧 Calling tool: **version_service__version**\n',
    '\n🔧 Argocd: Calling tool: version_service__version...\n',
    '🔍 Calling tool: version_service__version',
  ]) {
    assert.deepEqual(noticeOfText(text, never), { phase: 'start', tool: 'version_service__version', failed: false }, text);
  }
  for (const [text, failed] of [
    ['✅ Tool **version_service__version** completed\n', false],
    ['✅ Argocd: Tool version_service__version completed', false],
    ['❌ Tool version_service__version failed', true],
    ['❌ Tool version_service__version completed', true],
  ] as const) {
    assert.deepEqual(noticeOfText(text, always), { phase: 'end', tool: 'version_service__version', failed }, text);
  }
});

test('a text that only begins like a notice is text [S2-10]', () => {
  for (const text of [
    '',
    '✅',
    '🔧',
    '✅ done',
    '✅ completed',
    '❌ failed',
    '🔧 Calling',
    '🔧 Calling tool:',
    '🔧 Calling tool: the big one',
    'Calling tool: x',
    'I will use 🔧 Calling tool: x',
    '✅ Tool x completed. All is well',
    '✅ Tool x completed\n✅ Tool y completed',
    `🔧 Calling tool: ${'x'.repeat(129)}`,
    `🔧 ${'x'.repeat(1_000_000)}`,
  ]) {
    assert.equal(noticeOfText(text, always), undefined, text.slice(0, 40));
  }
});

test('an end without a start is part of the answer’s text', () => {
  assert.equal(noticeOfText('✅ Tool deploy completed', never), undefined);
});

test('metadata takes precedence over the form of the text', () => {
  assert.deepEqual(noticeOfMetadata({ tool: 'x', phase: 'start', toolCallId: 'c' }), {
    phase: 'start',
    tool: 'x',
    callId: 'c',
    failed: false,
  });
  assert.deepEqual(noticeOfMetadata({ tool: 'x', phase: 'end', failed: true }), { phase: 'end', tool: 'x', failed: true });
  for (const metadata of [
    undefined,
    {},
    { tool: 'x' },
    { phase: 'start' },
    { tool: 7, phase: 'start' },
    { tool: 'x', phase: 'middle' },
  ]) {
    assert.equal(noticeOfMetadata(metadata), undefined);
  }
});

test('arguments and results of the agent are passed on in any form', () => {
  assert.deepEqual(noticeOfMetadata({ tool: 'x', phase: 'start', arguments: { city: 'Rome' }, result: 'early' }), {
    phase: 'start',
    tool: 'x',
    failed: false,
    arguments: { city: 'Rome' },
  });
  const name = 'tool_notification_end';
  for (const result of ['sunny', null, 0, [1]])
    assert.equal(noticeOfArtifact({ name, metadata: { tool: 'x', result } })?.result, result);
});

test('metadata marks the end of a call as failed or waiting; a description can mark it as failed [S2-7]', () => {
  const end = (metadata: Metadata, description?: string) =>
    noticeOfArtifact({ name: 'tool_notification_end', metadata, ...(description !== undefined && { description }) });
  const x = { phase: 'end', tool: 'x', failed: false };
  assert.deepEqual(end({ tool: 'x' }), x);
  assert.deepEqual(end({ tool: 'x', failed: true }), { ...x, failed: true });
  assert.deepEqual(end({ tool: 'x', waiting: true }), { ...x, waiting: true });
  assert.deepEqual(end({ tool: 'x', failed: 'yes', waiting: 'yes' }), x);
  assert.deepEqual(end({ tool: 'x', toolCallId: 'c' }, 'Tool call failed: x'), { ...x, callId: 'c', failed: true });
  assert.deepEqual(end({ tool: 'x' }, 'Tool call completed: x'), x);
});

test('an artifact is a notice by its name or recorded kind; without a tool it stays an artifact [C-1]', () => {
  const metadata = { tool: 'x', toolCallId: 'c' };
  assert.equal(noticeOfArtifact({ name: 'tool_notification_complete', metadata })?.phase, 'end');
  assert.equal(noticeOfArtifact({ name: 'acme_call', metadata: { ...metadata, artifactKind: 'call-start' } })?.phase, 'start');
  assert.equal(noticeOfArtifact({ name: 'tool_notification_end', description: 'Tool call failed: x' })?.failed, true);
  assert.equal(noticeOfArtifact({ name: 'tool_notification_end', description: 'Tool call rejected: x' })?.failed, true);
  assert.equal(noticeOfArtifact({ name: 'tool_notification_start', description: 'Tool call started: argocd' })?.tool, 'argocd');
  assert.equal(noticeOfArtifact({ name: 'tool_notification_start' }), undefined);
  assert.equal(noticeOfArtifact({ name: 'tool_notification_start', description: 'Tool call failed: x' })?.failed, false);
  assert.equal(noticeOfArtifact({ name: 'streaming_result', metadata }), undefined);
});
