import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Fold } from '@hopline/a2a';
import { collect, textOf } from '../support/cluster/a2a-stream.ts';
import { Cluster } from '../support/cluster/cluster.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DEMO = `${ROOT}infra/local/demo`;
/** Documents with questions for the cluster of `npm start`. */
const DOCUMENTS = ['README.md', 'packages/cli/README.md', 'docs/guides/*.md'];
const COMMAND = /hopline (?:-- )?ask (?:"([^"]+)"|([a-z]+))/g;
const REQUEST = /"role":"user"[^\n]*"text":"([^"]+)"/g;

let cluster: Cluster;

before(async () => {
  const { agents } = JSON.parse(readFileSync(`${DEMO}/agents.json`, 'utf8'));
  cluster = await Cluster.shared({ agents, agentsFolder: DEMO });
});

after(() => cluster?.[Symbol.asyncDispose]());

async function answerTo(text: string): Promise<string> {
  const list = await collect(cluster.url, { text });
  const fold = new Fold();
  for (const { event } of list) fold.add(event);
  const { state, message } = fold.task!.status;
  assert.equal(state, 'TASK_STATE_COMPLETED', `"${text}": ${message?.parts[0]?.text}`);
  return textOf(list, 'partial_result');
}

function suggestedQuestions(): string[] {
  const questions = globSync(DOCUMENTS, { cwd: ROOT }).flatMap(path => {
    const text = readFileSync(`${ROOT}${path}`, 'utf8');
    return [...text.matchAll(COMMAND), ...text.matchAll(REQUEST)].map(([, quoted, word]) => quoted ?? word ?? '');
  });
  return [...new Set(questions)];
}

test('the demo answers a greeting: its guide introduces itself with questions that work', { timeout: 120_000 }, async () => {
  for (const greeting of ['hello', 'what can you do?', 'list the files', 'read README.md', 'Hello, what can you do?']) {
    const introduction = await answerTo(greeting);
    assert.match(introduction, /I am the guide/, greeting);
    const [first, ...questions] = [...introduction.matchAll(/`([^`]+ [^`]+)`/g)].map(([, question]) => question!);
    assert.ok(first !== undefined && questions.length >= 2);
    if (greeting !== 'hello') continue;
    for (const question of [first, ...questions]) assert.doesNotMatch(await answerTo(question), /I am the guide/, question);
  }
});

test('every question that the documents and the launcher suggest is answered', { timeout: 240_000 }, async () => {
  const questions = suggestedQuestions();
  assert.ok(questions.includes('explain hopline') && questions.includes('hello'), questions.join(' | '));
  const { text: demo } = JSON.parse(readFileSync(`${DEMO}/question.json`, 'utf8'));
  const answers = await Promise.all([...questions, demo].map(answerTo));
  for (const answer of answers) assert.notEqual(answer, '');
  // Both agents answer the demo's question. Which text stands first depends on which agent writes first, and so on the load of the machine.
  for (const part of [/\[DIR\] a2a/, /How Hopline streamed this answer/]) assert.match(answers.at(-1)!, part);
});
