import assert from 'node:assert/strict';
import { test } from 'node:test';
import { failureLine, runCommand } from './command.mjs';

const node = script => [process.execPath, '-e', script];

test('a program that hangs is killed with its children after the timeout', async () => {
  const script = `const {spawn}=require('child_process');const c=spawn(process.execPath,['-e','setTimeout(()=>{},60000)'],{stdio:'inherit'});console.log(c.pid);setTimeout(()=>{},60000)`;
  const result = await runCommand(node(script), { timeoutMs: 1500 });
  assert.ok(result.timedOut);
  assert.ok(!result.ok);
  const child = Number(result.stdout);
  assert.ok(child > 0);
  // The close event shows that no process holds the pipe: the grandchild that inherited it has ended too.
  assert.equal(failureLine(result), 'timed out');
});

test('a missing program is a result, not an exception', async () => {
  const result = await runCommand(['/nowhere/tool'], { timeoutMs: 1000 });
  assert.ok(!result.ok);
  assert.match(failureLine(result), /ENOENT/);
});

test('the informative line of a failure is found among the others', () => {
  const result = {
    timedOut: false,
    code: 1,
    stdout: 'Reading lists\n',
    stderr: 'hint: one\nE: Unable to locate\nerror: denied by policy\nbye\n',
  };
  assert.equal(failureLine(result), 'error: denied by policy');
  assert.equal(failureLine({ ...result, stdout: '', stderr: '' }), 'exit code 1');
});
