import { ModelServer, newest } from '../../../support/agents/model-server.ts';
import { tokensOf } from '../../../support/agents/scripted-agent.ts';
import { requestOf } from './request.ts';
import { RunFile } from './run-file.ts';

/** The server of the language model behind the agent `thinker`. It follows the script in the text of the newest message. */
export function startScriptedModelServer(runsFolder: string): Promise<ModelServer> {
  const runs = new RunFile(runsFolder);
  return ModelServer.start((request, nth, closed) => {
    const { messageId, scripts } = requestOf(newest(request, 'user'));
    const script = scripts.thinker!;
    const message = { messageId, role: 'ROLE_USER' as const, parts: [] };
    // A model does not know the attempts of its caller: each request counts as one.
    const run = runs.begin('thinker', { message, attempt: nth }, script);
    void closed.then(() => runs.end(run));
    return [{ pause: script.silentMs ?? 0 }, { tokens: tokensOf(run.id, script), everyMs: script.everyMs }];
  });
}
