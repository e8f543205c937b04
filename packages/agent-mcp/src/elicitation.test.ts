import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Part } from '@hopline/a2a';
import { Answers, type Elicitation, questionKey, questionParts, readAnswer } from './elicitation.ts';

type Properties = Elicitation['requestedSchema']['properties'];

const form = (properties: Properties, required: string[] = Object.keys(properties)): Elicitation => ({
  message: 'Which one?',
  requestedSchema: { type: 'object', properties, required },
});

function read(elicitation: Elicitation, answer: string | Part) {
  const parts = [typeof answer === 'string' ? { text: answer } : answer];
  return readAnswer(elicitation, { messageId: 'm', role: 'ROLE_USER', parts });
}

const contentOf = (elicitation: Elicitation, answer: string | Part) => read(elicitation, answer).result?.content;

test('the value of the only field is read from plain text', () => {
  assert.deepEqual(contentOf(form({ city: { type: 'string' } }), '  New York\n'), { city: 'New York' });
  assert.deepEqual(contentOf(form({ n: { type: 'integer' } }), '7'), { n: 7 });
  assert.deepEqual(contentOf(form({ n: { type: 'number' } }), '-2.5'), { n: -2.5 });
  assert.deepEqual(contentOf(form({ sure: { type: 'boolean' } }), 'Yes'), { sure: true });
  assert.deepEqual(contentOf(form({ sure: { type: 'boolean' } }), 'no'), { sure: false });
  assert.deepEqual(contentOf(form({ color: { type: 'string', enum: ['red', 'blue'] } }), 'Blue'), { color: 'blue' });
  const hero: Properties = { hero: { type: 'string', oneOf: [{ const: 'h-1', title: 'Superman' }] } };
  assert.deepEqual(contentOf(form(hero), 'superman'), { hero: 'h-1' });
  const fish: Properties = { fish: { type: 'array', items: { type: 'string', enum: ['tuna', 'trout'] } } };
  assert.deepEqual(contentOf(form(fish), 'trout, Tuna'), { fish: ['trout', 'tuna'] });
});

test('a JSON object and a data part fill in the form, and absent fields get its defaults', () => {
  const person = form({ name: { type: 'string' }, age: { type: 'number', default: 7 } }, ['name']);
  assert.deepEqual(contentOf(person, '{"name":"Ada"}'), { name: 'Ada', age: 7 });
  assert.deepEqual(contentOf(person, { data: { name: 'Ada', age: 8 } }), { name: 'Ada', age: 8 });
  assert.deepEqual(contentOf(person, { data: { action: 'accept', content: { name: 'Bob' } } }), { name: 'Bob', age: 7 });
});

test('decline and cancel are actions, as a word or as data', () => {
  for (const one of [form({}), form({ city: { type: 'string' } }), form({ a: { type: 'string' }, b: { type: 'string' } })]) {
    assert.deepEqual(read(one, ' Decline ').result, { action: 'decline' });
    assert.deepEqual(read(one, 'cancel').result, { action: 'cancel' });
    assert.deepEqual(read(one, { data: { action: 'cancel' } }).result, { action: 'cancel' });
  }
});

test('a question without fields is accepted only with a yes', () => {
  assert.deepEqual(read(form({}), 'OK').result, { action: 'accept', content: {} });
  assert.deepEqual(read(form({}), 'no').result, { action: 'decline' });
  assert.match(read(form({}), 'well, yes').fault ?? '', /needs `yes`/);
});

test('an answer that does not fit is refused with one sentence', () => {
  assert.match(read(form({ n: { type: 'integer', minimum: 1 } }), 'many').fault ?? '', /^The answer does not fit: .*integer/);
  assert.match(read(form({ n: { type: 'integer', minimum: 1 } }), '0').fault ?? '', />= 1/);
  assert.match(read(form({ color: { type: 'string', enum: ['red'] } }), 'green').fault ?? '', /does not fit/);
  assert.match(read(form({ mail: { type: 'string', format: 'email' } }), 'nowhere').fault ?? '', /email/);
  assert.match(read(form({ a: { type: 'string' }, b: { type: 'string' } }), 'both').fault ?? '', /needs a JSON object/);
  assert.match(read(form({ a: { type: 'string' } }), '{"b":1}').fault ?? '', /does not fit/);
  const broken = form({ a: { type: 'string' } });
  Object.assign(broken.requestedSchema, { $schema: 'https://x.test/unknown' });
  assert.match(read(broken, 'x').fault ?? '', /form of this question is not valid/);
});

test('the question has its fields as text and the form as data', () => {
  const question = form(
    {
      color: { type: 'string', title: 'Color', enum: ['red', 'blue'] },
      n: { type: 'integer', description: 'How many', default: 2 },
    },
    ['color'],
  );
  const [text, data] = questionParts(question);
  assert.equal(
    text?.text,
    'Which one?\n\n- color (one of red, blue): Color\n- n (integer, optional, default 2): How many\n\nAnswer with a JSON object with these fields, or with `decline` or `cancel`.',
  );
  assert.deepEqual(data?.data, question);
  assert.match(questionParts(form({}), 'Not so.')[0]?.text ?? '', /^Not so\.\n\nWhich one\?\n\nAnswer with `yes`/);
});

test('an answer applies to only one question with the same text and form', () => {
  const one = form({ a: { type: 'string' } });
  const other = { ...one, message: 'Another one?' };
  const answers = new Answers([
    { question: questionKey(one), result: { action: 'accept', content: { a: '1' } } },
    { question: questionKey(one), result: { action: 'accept', content: { a: '2' } } },
  ]);
  assert.equal(answers.take(other), undefined);
  assert.deepEqual(
    [answers.take(one)?.content, answers.take(one)?.content, answers.take(one)],
    [{ a: '1' }, { a: '2' }, undefined],
  );
});
