import { type RemoteAgent, type Step, startRemoteAgent } from '../support/agents/remote-agent.ts';

/** Duration of the resubscription task, in milliseconds: twice the kit's streaming timeout. */
const HELD_MS = 4_000;

const WORKING: Step = { status: 'working' };
const COMPLETED: Step = { complete: true };
const COMPLETED_WITH_MESSAGE: Step = { complete: true, text: 'Hello from TCK' };
/** `b3V0cHV0` is `output`. */
const FILE = { raw: 'b3V0cHV0', filename: 'output.txt', mediaType: 'text/plain' };
const FILE_URL = { url: 'https://example.com/output.txt', filename: 'output.txt', mediaType: 'text/plain' };
const DATA = { data: { key: 'value', count: 42 } };

const artifact = (part: Record<string, unknown>): Step => ({ artifact: { parts: [part] }, append: false, lastChunk: true });
const streamed = (part: Record<string, unknown>): Step[] => [WORKING, artifact(part), COMPLETED];

/** Scripts for the kit's scenarios (scenarios/*.feature), by prefix of the message id. */
export const SCENARIOS: Readonly<Record<string, readonly Step[]>> = {
  'tck-complete-task': [COMPLETED_WITH_MESSAGE],
  'tck-artifact-text': [artifact({ text: 'Generated text content' }), COMPLETED],
  'tck-artifact-file': [artifact(FILE), COMPLETED],
  'tck-artifact-file-url': [artifact(FILE_URL), COMPLETED],
  'tck-artifact-data': [artifact(DATA), COMPLETED],
  'tck-message-response': [{ message: 'Direct message response' }],
  'tck-input-required': [{ inputRequired: 'Please go on' }],
  'tck-reject-task': [{ status: 'rejected', text: 'rejected' }],
  'tck-stream-001': streamed({ text: 'Stream hello from TCK' }),
  'tck-stream-002': [COMPLETED],
  'tck-stream-003': streamed({ text: 'Stream task lifecycle' }),
  'tck-stream-ordering-001': streamed({ text: 'Ordered output' }),
  'tck-stream-artifact-text': streamed({ text: 'Streamed text content' }),
  'tck-stream-artifact-file': streamed(FILE),
  'tck-stream-artifact-chunked': [
    WORKING,
    { artifact: { parts: [{ text: 'chunk-1 ' }] }, append: false, lastChunk: false },
    { artifact: { parts: [{ text: 'chunk-2' }] }, append: true, lastChunk: true },
    COMPLETED,
  ],
  'test-resubscribe-message-id': [WORKING, { pause: HELD_MS }, COMPLETED],
};

/** The longest prefix wins. The kit also sends ids without a scenario, and expects those tasks to complete. */
export function scenarioOf(messageId: string): readonly Step[] {
  const prefixes = Object.keys(SCENARIOS).filter(prefix => messageId.startsWith(prefix));
  const longest = prefixes.sort((a, b) => b.length - a.length)[0];
  return longest === undefined ? [COMPLETED_WITH_MESSAGE] : SCENARIOS[longest]!;
}

/** The agent behind Hopline while the conformance kit runs. */
export function startTckAgent(): Promise<RemoteAgent> {
  const messageId = (params: Record<string, unknown>) => (params.message as { messageId?: string } | undefined)?.messageId;
  return startRemoteAgent({ dialect: '1.0', script: ({ params }) => [...scenarioOf(messageId(params) ?? '')] });
}
