import { hash } from 'node:crypto';
import { isObject, type Message, type Part, parseObject } from '@hopline/a2a';
import type { ElicitRequestFormParams, ElicitResult, InputRequests, JsonSchemaType } from '@modelcontextprotocol/client';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';

/** A question of a server for the user: its text, and the form that an answer fills in. */
export type Elicitation = Pick<ElicitRequestFormParams, 'message' | 'requestedSchema'>;

/** An answer of the user. `question` is `questionKey` of its question. */
export type GivenAnswer = { question: string; result: ElicitResult };

/** The result `input_required` of a call (MCP 2026-07-28): its questions, and a state of the server that the next call returns. */
export type InputRound = { requests: InputRequests; state?: string };

/** State of the earlier runs of a call that its next run needs. It is JSON, because the log keeps it while the task waits for the user. */
export type CallInput = {
  /** Answers to the round, or to the whole call without one. */
  answers: readonly GivenAnswer[];
  /** Answers to earlier rounds. */
  earlier?: readonly GivenAnswer[];
  round?: InputRound;
};

/** The call needs an answer of the user. `input`: what its next run needs in addition to that answer. */
export class ToolAsked extends Error {
  override readonly name = 'ToolAsked';
  readonly elicitation: Elicitation;
  readonly input: CallInput;

  constructor({ message, requestedSchema }: Elicitation, input: CallInput) {
    super('the tool asks the user');
    this.elicitation = { message, requestedSchema };
    this.input = input;
  }
}

/** Recognizes a question that a server asks again. An answer applies only to the same text and the same form. */
export function questionKey({ message, requestedSchema }: Elicitation): string {
  return hash('sha256', JSON.stringify([message, requestedSchema])).slice(0, 16);
}

/** The answers for one run of a call. Each of them answers one question: a server may ask the same question twice. */
export class Answers {
  readonly #left: GivenAnswer[];

  constructor(given: readonly GivenAnswer[]) {
    this.#left = [...given];
  }

  take(elicitation: Elicitation): ElicitResult | undefined {
    const key = questionKey(elicitation);
    const index = this.#left.findIndex(({ question }) => question === key);
    return index < 0 ? undefined : this.#left.splice(index, 1)[0]!.result;
  }
}

/** The question as a message: as text for people, and as data for clients that show a form. `fault`: why the last answer was refused. */
export function questionParts(elicitation: Elicitation, fault?: string): Part[] {
  const { message, requestedSchema } = elicitation;
  const fields = Object.entries(requestedSchema.properties).map(([name, field]) => fieldLine(name, field, requestedSchema));
  const lines = [...(fault === undefined ? [] : [fault, '']), message, ...(fields.length > 0 ? ['', ...fields] : []), ''];
  return [{ text: [...lines, howToAnswer(elicitation)].join('\n') }, { data: { message, requestedSchema } }];
}

type Field = Elicitation['requestedSchema']['properties'][string];

function fieldLine(name: string, field: Field, { required = [] }: Elicitation['requestedSchema']): string {
  const { title, description } = field;
  const choices = choicesOf(field).map(({ value, title }) => (title === value ? value : `${value} (${title})`));
  const type = choices.length > 0 ? `${field.type === 'array' ? 'some' : 'one'} of ${choices.join(', ')}` : field.type;
  const standard = field.default === undefined ? '' : `, default ${JSON.stringify(field.default)}`;
  const texts = [title, description].filter(text => text !== undefined && text !== '');
  return `- ${name} (${type}${required.includes(name) ? '' : ', optional'}${standard})${texts.length > 0 ? `: ${texts.join('. ')}` : ''}`;
}

function howToAnswer({ requestedSchema }: Elicitation): string {
  const count = Object.keys(requestedSchema.properties).length;
  const form = count === 0 ? '`yes`' : count === 1 ? 'the value' : 'a JSON object with these fields';
  return `Answer with ${form}, or with \`decline\` or \`cancel\`.`;
}

/** The values of a field that allows only some. */
function choicesOf(field: Field): { value: string; title: string }[] {
  const one = (field.type === 'array' ? field.items : field) as {
    enum?: unknown;
    enumNames?: unknown;
    oneOf?: unknown;
    anyOf?: unknown;
  };
  const named = one.oneOf ?? one.anyOf;
  if (Array.isArray(named))
    return named.map(({ const: value, title = value }) => ({ value: String(value), title: String(title) }));
  if (!Array.isArray(one.enum)) return [];
  const names = Array.isArray(one.enumNames) ? one.enumNames : [];
  return one.enum.map((value, index) => ({ value: String(value), title: String(names[index] ?? value) }));
}

/** The answer in a message of the user, or one sentence for the user: why the message does not answer the question. */
type ReadAnswer = { result: ElicitResult; fault?: undefined } | { fault: string; result?: undefined };

const ACTIONS: readonly unknown[] = ['accept', 'decline', 'cancel'];
const YES = /^(y|yes|ok|okay|true|accept)$/i;
const NO = /^(n|no|false)$/i;

/**
 * Reads the answer: data of the form `{"action":…,"content":{…}}`, data or JSON that fills in the form, `decline`, `cancel`, or the value of
 * the only field. Absent fields get the default of the form.
 */
export function readAnswer(elicitation: Elicitation, { parts }: Message): ReadAnswer {
  const data = parts.find(part => isObject(part.data))?.data;
  const text = parts
    .flatMap(part => part.text ?? [])
    .join('')
    .trim();
  const given = isObject(data) ? data : parseObject(text);
  if (given !== undefined && ACTIONS.includes(given.action) && elicitation.requestedSchema.properties.action === undefined) {
    if (given.action !== 'accept') return { result: { action: given.action as 'decline' | 'cancel' } };
    return accepted(elicitation, isObject(given.content) ? given.content : {});
  }
  if (given !== undefined) return accepted(elicitation, given);
  const action = text.toLowerCase();
  if (action === 'decline' || action === 'cancel') return { result: { action } };
  const fields = Object.entries(elicitation.requestedSchema.properties);
  const [only] = fields;
  if (only === undefined) {
    if (YES.test(text)) return accepted(elicitation, {});
    return NO.test(text) ? { result: { action: 'decline' } } : { fault: 'This question needs `yes`, `decline` or `cancel`.' };
  }
  if (fields.length > 1) return { fault: 'This question needs a JSON object with its fields.' };
  const [name, field] = only;
  return accepted(elicitation, { [name]: valueIn(text, field) });
}

/** The value of the text for the field. A text that fits no value stays a text, which the check of the form will refuse. */
function valueIn(text: string, field: Field): unknown {
  const choices = choicesOf(field);
  const chosen = (word: string) =>
    choices.find(({ value, title }) => [value, title].some(one => one.toLowerCase() === word.toLowerCase()))?.value ?? word;
  switch (field.type) {
    case 'boolean':
      return YES.test(text) ? true : NO.test(text) ? false : text;
    case 'number':
    case 'integer':
      return text === '' || Number.isNaN(Number(text)) ? text : Number(text);
    case 'array':
      return text === '' ? [] : text.split(',').map(word => chosen(word.trim()));
    default:
      return choices.length > 0 ? chosen(text) : text;
  }
}

function accepted({ requestedSchema }: Elicitation, given: object): ReadAnswer {
  const defaults = Object.entries(requestedSchema.properties).flatMap(([name, field]) =>
    field.default === undefined ? [] : [[name, field.default] as const],
  );
  const content = { ...Object.fromEntries(defaults), ...given };
  try {
    // A new validator for each answer, because a validator keeps every form that it has seen.
    const { valid, errorMessage } = new AjvJsonSchemaValidator().getValidator(requestedSchema as JsonSchemaType)(content);
    return valid
      ? { result: { action: 'accept', content } as ElicitResult }
      : { fault: `The answer does not fit: ${errorMessage}.` };
  } catch {
    return { fault: 'The form of this question is not valid, so it can only be answered with `decline` or `cancel`.' };
  }
}
