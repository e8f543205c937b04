import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnreachableError } from './connection.ts';
import { type Draft, requestOf, send } from './send-message.ts';

const parts = [{ text: 'why?' }];

test('a message begins, continues, answers, forks or repeats a task, and names the chosen agent', () => {
  const begun = requestOf({ parts, target: { kind: 'new' } });
  assert.ok(begun.message.contextId !== undefined && begun.message.taskId === undefined);
  assert.ok(!('metadata' in begun) && !('metadata' in begun.message));
  assert.equal(requestOf({ parts, target: { kind: 'new', contextId: 'c' } }).message.contextId, 'c');
  const { message: answer } = requestOf({ parts, target: { kind: 'answer', task: { id: 't', contextId: 'c' } }, agent: 'guide' });
  assert.deepEqual([answer.taskId, answer.contextId, answer.metadata], ['t', 'c', { agent: 'guide' }]);
  const { message: again } = requestOf({ parts, target: { kind: 'rerun', taskId: 't' }, agent: 'other' });
  assert.deepEqual([again.referenceTaskIds, again.metadata, again.taskId], [['t'], { agent: 'other' }, undefined]);
  assert.deepEqual(again.parts, parts);
});

test('a fork has the point in the form that ingress reads, and a new context', () => {
  const fork = requestOf({ parts, target: { kind: 'fork', taskId: 't', cursor: '17.42' } });
  assert.deepEqual(fork.metadata, { 'hopline.fork': { taskId: 't', cursor: '17.42' } });
  assert.notEqual(
    fork.message.contextId,
    requestOf({ parts, target: { kind: 'fork', taskId: 't', cursor: '17.42' } }).message.contextId,
  );
});

test('a message whose answer was lost is sent again as the same message; once it is answered, the same text is a new message', async () => {
  const sent: ReturnType<typeof requestOf>[] = [];
  const answers: (object | Error)[] = [new UnreachableError('lost'), { task: { id: 't' } }, { task: { id: 'u' } }];
  const connection = {
    post: async <T>(_path: string, body: unknown) => {
      sent.push(body as ReturnType<typeof requestOf>);
      const answer = answers.shift();
      if (answer instanceof Error) throw answer;
      return answer as T;
    },
  };
  const draft: Draft = { parts, target: { kind: 'new' }, agent: 'guide' };
  await assert.rejects(send(connection, draft), UnreachableError);
  assert.equal(await send(connection, { ...draft }), 't');
  assert.equal(await send(connection, draft), 'u');
  const [lost, again, next] = sent;
  assert.deepEqual(again, lost);
  assert.notEqual(next!.message.messageId, lost!.message.messageId);
  assert.notEqual(next!.message.contextId, lost!.message.contextId);
});
