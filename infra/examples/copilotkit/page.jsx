import { CopilotKitProvider, useAgent, useCopilotKit } from '@copilotkit/react-core/v2';
import { useEffect, useRef, useState } from 'react';
import { createRoot } from 'react-dom/client';

const RETRY_MS_MAX = 8_000;

// The thread is in the address, so that a reload shows the same chat.
const threadId = location.hash.slice(1) || crypto.randomUUID();
location.hash = threadId;

/** What a reload needs: the messages, and the run that has not ended. */
const load = () => JSON.parse(localStorage.getItem(threadId) ?? '{"messages":[]}');
const save = stored => localStorage.setItem(threadId, JSON.stringify(stored));

/** Hopline has answered to the end. Other errors are of connections: the same run, sent again, is resumed. */
const isEnd = ({ type, code = '' }) =>
  type === 'RUN_FINISHED' || (type === 'RUN_ERROR' && (code.startsWith('task_') || code === 'events_expired'));

function Chat() {
  const { agent, isReady } = useAgent({ agentId: 'chat', runtimeAgentId: 'hopline', threadId });
  const { copilotkit } = useCopilotKit();
  const [status, setStatus] = useState('ready');
  const hasResumed = useRef(false);

  const run = async ({ runId, resume }) => {
    for (let wait = 250; ; wait = Math.min(2 * wait, RETRY_MS_MAX)) {
      setStatus('streaming');
      let end;
      const { unsubscribe } = agent.subscribe({
        onEvent: ({ event }) => {
          if (isEnd(event)) end = event;
        },
        onMessagesChanged: () => save({ messages: agent.messages, run: { runId, resume } }),
      });
      await copilotkit.runAgent({ agent, runId, resume });
      unsubscribe();
      if (end !== undefined) {
        save({ messages: agent.messages });
        return setStatus(end.type === 'RUN_ERROR' ? end.message : 'ready');
      }
      setStatus('reconnecting');
      await new Promise(resolve => setTimeout(resolve, wait));
    }
  };

  useEffect(() => {
    if (!isReady || hasResumed.current) return;
    hasResumed.current = true;
    const stored = load();
    agent.setMessages(stored.messages);
    if (stored.run !== undefined) void run(stored.run);
  });

  const ask = form => {
    const text = String(form.get('text'));
    const [question] = agent.pendingInterrupts ?? [];
    const answer = question && [{ interruptId: question.id, status: 'resolved', payload: text }];
    agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
    const next = { runId: crypto.randomUUID(), resume: answer };
    save({ messages: agent.messages, run: next });
    void run(next);
  };

  return (
    <main>
      {agent.messages.map(({ id, role, content }) =>
        (role === 'user' || role === 'assistant') && typeof content === 'string' && content !== '' ? (
          <p key={id} data-role={role}>
            {content}
          </p>
        ) : null,
      )}
      {(agent.pendingInterrupts ?? []).map(({ id, message }) => (
        <p key={id}>{message}</p>
      ))}
      <form action={ask}>
        <input name="text" aria-label="Your question" required />
        <button type="submit" disabled={!isReady || status === 'streaming'}>
          Ask
        </button>
        <output>{status}</output>
      </form>
    </main>
  );
}

createRoot(document.getElementById('chat')).render(
  <CopilotKitProvider runtimeUrl="/api/copilotkit">
    <Chat />
  </CopilotKitProvider>,
);
