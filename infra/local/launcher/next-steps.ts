import { streamRequest } from './ask.ts';
import type { RunningProcess } from './run-file.ts';

const JSON_HEADER = "-H 'content-type: application/json'";

export type NextSteps = {
  url: string;
  question: string;
  processes: RunningProcess[];
  /** A task that ran already and the id of one of its frames; null when no question was asked. */
  resume: { taskId: string; frameId: string } | null;
};

/** The three commands to try, with the values of this cluster filled in. */
export function nextSteps({ url, question, processes, resume }: NextSteps): string[] {
  const relay = processes.find(({ service }) => service === 'relay');
  const { taskId, frameId } = resume ?? { taskId: 'TASK_ID', frameId: 'FRAME_ID' };
  const resubscribe = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tasks/resubscribe', params: { id: taskId } });
  const source = resume ? 'here the task above, after one of its frames' : 'fill in a task id and a frame id from 1';
  return [
    'Try next, in a second terminal:',
    '',
    '1. Ask it yourself (Ctrl-C cuts the connection, the task goes on):',
    `   curl -N ${url} ${JSON_HEADER} -d ${quote(streamRequest(1, 'message-1', question))}`,
    '',
    `2. Resume a stream that was cut: everything after the id of the last frame you saw (${source}):`,
    `   curl -N ${url} ${JSON_HEADER} -H 'Last-Event-ID: ${frameId}' -d ${quote(resubscribe)}`,
    '',
    '3. Kill the relay while 1 is streaming; it is started again and no character is lost:',
    `   kill -9 ${relay?.pid ?? 'PID'}`,
    '',
  ];
}

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
