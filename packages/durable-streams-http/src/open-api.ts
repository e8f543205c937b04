import type { JsonObject } from '@hopline/a2a';

const OFFSET_PATTERN = '^[0-9]{15}_[0-9]{15}$';

const header = (description: string, pattern?: string): JsonObject => ({
  description,
  schema: { type: 'string', ...(pattern !== undefined && { pattern }) },
});

const HEADERS: JsonObject = {
  'Stream-Next-Offset': header('The offset after the last message.', OFFSET_PATTERN),
  'Stream-Up-To-Date': header('`true` if the messages end at the tail.'),
  'Stream-Closed': header('`true` if the task has ended and the messages end with it.'),
  'Stream-Cursor': header('Sent back as `cursor` by the next long poll.'),
};

const error = (description: string): JsonObject => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
});

const offset = {
  name: 'offset',
  in: 'query',
  description:
    'Read the messages after this offset: `-1` for all, `now` for none, else a `Stream-Next-Offset`. A live read needs one.',
  schema: { type: 'string', anyOf: [{ enum: ['-1', 'now'] }, { pattern: OFFSET_PATTERN }] },
};
const live = {
  name: 'live',
  in: 'query',
  description: 'Wait for the next messages, or stream them until the task ends.',
  schema: { type: 'string', enum: ['long-poll', 'sse'] },
};
const cursor = {
  name: 'cursor',
  in: 'query',
  description: 'The `Stream-Cursor` of the previous response.',
  schema: { type: 'string' },
};

/** The operations of this front in `/openapi.json`. */
export const OPEN_API: Readonly<Record<string, Readonly<Record<string, JsonObject>>>> = {
  '/tasks/{taskId}/stream': {
    get: {
      operationId: 'ReadTaskStream',
      summary: 'Reads the events of a task as a Durable Stream. Not part of A2A.',
      parameters: [offset, live, cursor],
      responses: {
        '200': {
          description: 'The messages after the offset: stream responses of A2A 1.0; with `live=sse` as server-sent events.',
          headers: HEADERS,
          // Events of a stream have no schema, as in A2A.
          content: {
            'application/json': { schema: { type: 'array', items: { type: 'object' } } },
            'text/event-stream': {},
          },
        },
        '204': { description: 'A long poll has ended without a new message.', headers: HEADERS },
        '304': { description: 'The messages are still those that `If-None-Match` names.' },
        '410': error('Retention has removed events after the offset.'),
      },
    },
    head: {
      operationId: 'ReadTaskStreamTail',
      summary: 'Names the tail of the stream, and whether the task has ended. Not part of A2A.',
      responses: { '200': { description: 'The tail.', headers: HEADERS } },
    },
  },
};
