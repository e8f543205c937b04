import { type Step, startRemoteAgent } from '../../../../support/agents/remote-agent.ts';
import { tokensOf } from '../../../../support/agents/scripted-agent.ts';
import { requestOf } from '../request.ts';
import { RUNS_FOLDER, RunFile } from '../run-file.ts';

/** The remote A2A agent: an HTTP server in a separate process. It reads its script in the text of the message. */
const runs = new RunFile(process.env[RUNS_FOLDER] ?? '.');
/** A remote agent does not know the attempts of its caller: each run counts as one. */
let attempts = 0;

await startRemoteAgent({
  dialect: '0.3',
  keeps: text => (requestOf(text).scripts.reader?.remote === 'keeps its text' ? 'all' : 'newest'),
  port: Number(process.env.HOPLINE_PORT ?? 0),
  script: async function* ({ text, taskId }): AsyncGenerator<Step> {
    const { messageId, scripts } = requestOf(text);
    const script = scripts.reader!;
    attempts += 1;
    const message = { messageId, taskId, role: 'ROLE_USER' as const, parts: [] };
    const run = runs.begin('reader', { message, attempt: process.pid * 1e6 + attempts }, script);
    try {
      yield { pause: script.silentMs ?? 0 };
      for (const token of tokensOf(run.id, script)) {
        yield { pause: script.everyMs };
        yield { token };
      }
      if (script.remote === 'repeats itself' && script.end === 'done')
        yield { artifact: { artifactId: `answer-${run.id}`, text: tokensOf(run.id, script).join('') }, lastChunk: true };
      if (script.end === 'asks') yield { inputRequired: 'Which one?' };
      else if (script.end === 'fails') yield { fail: true, text: 'the script wants it' };
      else yield { complete: true };
    } finally {
      runs.end(run);
    }
  },
});

// Ends this process together with the one that started it.
process.stdin.resume().once('end', () => process.exit());
