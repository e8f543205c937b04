import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cpuGrowth } from '../../../test/support/cpu-growth.ts';
import { sideAnswerOf } from './side-request.ts';

/** The frame of Open WebUI's prompts. Its own words differ from version to version and by configuration. */
const promptOf = (
  wanted: string,
  history = 'USER: How do I roll back a deployment in the staging cluster?\nASSISTANT: Use the console.',
) =>
  `### Task:\nDescribe the chat.\n### Output:\nJSON format: { "${wanted}": … }\n### Chat History:\n<chat_history>\n${history}\n</chat_history>`;

const bodyOf = (content: unknown, more: object = {}) => ({
  ...{ model: 'writer', messages: [{ role: 'user', content }], stream: false, max_completion_tokens: 1_000 },
  ...more,
});

test('requests of a chat page for titles, tags and suggestions are answered from the chat', () => {
  assert.equal(sideAnswerOf(bodyOf(promptOf('title'))), '{"title":"How do I roll back a …"}');
  assert.equal(sideAnswerOf(bodyOf(promptOf('title', 'USER: two\nlines\nASSISTANT: x'))), '{"title":"two lines"}');
  assert.equal(sideAnswerOf(bodyOf(promptOf('title', 'USER: only a question'))), '{"title":"only a question"}');
  assert.equal(sideAnswerOf(bodyOf(promptOf('title', 'ASSISTANT: x'))), '{"title":""}');
  const [long] = Object.values(JSON.parse(sideAnswerOf(bodyOf(promptOf('title', `USER: ${'🎯'.repeat(200)}`)))!) as object);
  assert.equal(long, `${'🎯'.repeat(60)} …`);
  for (const [wanted, answer] of [
    ['tags', '{"tags":[]}'],
    ['follow_ups', '{"follow_ups":[]}'],
    ['queries', '{"queries":[]}'],
    ['text', '{"text":""}'],
  ] as const)
    assert.equal(sideAnswerOf(bodyOf(promptOf(wanted))), answer);
  const system = { role: 'system', content: 'Be brief.' };
  const message = { role: 'user', content: promptOf('tags') };
  assert.equal(sideAnswerOf(bodyOf('', { messages: [system, message] })), '{"tags":[]}');
});

test('every other request is for the agent', () => {
  const prompt = promptOf('title');
  const others: unknown[] = [
    undefined,
    {},
    bodyOf('What is a title?'),
    bodyOf(prompt, { stream: true }),
    bodyOf(`Explain this prompt:\n${prompt}`),
    bodyOf('### Task:\nWrite { "title": "x" }'),
    bodyOf('### Task:\nSum up\n<chat_history>\nUSER: my "title": x\n</chat_history>'),
    bodyOf([{ type: 'text', text: prompt }]),
    bodyOf('', {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: prompt },
      ],
    }),
  ];
  for (const body of others) assert.equal(sideAnswerOf(body), undefined, JSON.stringify(body));
});

test('a message of the largest size is read in linear time, whatever marks it has', () => {
  const [begin, end] = ['<chat_history>', '</chat_history>'];
  const inputs: [string, (characters: number) => string][] = [
    ['open', characters => begin.repeat(characters / begin.length)],
    ['closed', characters => end.repeat(characters / end.length)],
    ['wanted', characters => `${begin}${'"title" '.repeat(characters / 8)}${end}${'"title" '.repeat(characters / 8)}`],
    ['users', characters => `"title":${begin}${'USER: \n'.repeat(characters / 7)}${end}`],
    ['spaces', characters => `"title":${begin}USER: ${' '.repeat(characters)}x${end}`],
  ];
  for (const [name, inputOf] of inputs) {
    const growth = cpuGrowth(
      characters => `### Task:\n${inputOf(characters)}`,
      2 ** 20,
      text => sideAnswerOf(bodyOf(text)),
    );
    assert.ok(growth < 64, `${name}: 16 times the text took ${growth} times the work`);
  }
});
