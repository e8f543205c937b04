import { DIALECTS, isTerminal, type StreamResponse } from '@hopline/a2a';
import { withGeneration } from '@hopline/agent-card';

const dialect = DIALECTS['1.0'];

/** A message of the stream: the event in the JSON of A2A 1.0, with its generation. The same bytes at every replica and in every read. */
export function messageOf(event: StreamResponse, generation: number): string {
  return dialect.frameText(dialect.encodeEvent(withGeneration(event, generation)));
}

/** Whether no event follows this one. */
export function endsStream(event: StreamResponse): boolean {
  return 'statusUpdate' in event && isTerminal(event.statusUpdate.status.state);
}
