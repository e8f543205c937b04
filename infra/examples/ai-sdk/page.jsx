import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { useEffect } from 'react';
import { createRoot } from 'react-dom/client';

const RETRY_MS = 1_000;

// The id of the chat is in the address, so that a reload and a second tab show the same chat.
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;

// main.mjs defines HOPLINE_URL when it bundles this file.
const api = new URL('/ui/chat', HOPLINE_URL).href;
const transport = new DefaultChatTransport({ api });

// Without the list of agents, Hopline chooses who answers.
const { agents } = await fetch(new URL('/agents', HOPLINE_URL))
  .then(response => response.json())
  .catch(() => ({ agents: [] }));

/** Ends the task, also at its agent: `stop` of useChat only closes the stream. */
const cancelTask = () =>
  fetch(`${api}/${encodeURIComponent(id)}/stop`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  });

function Chat() {
  const stored = JSON.parse(localStorage.getItem(id) ?? '[]');
  const { messages, sendMessage, addToolApprovalResponse, resumeStream, stop, status, error } = useChat({
    id,
    messages: stored,
    resume: true,
    transport,
    // Sends the user's decision about a call.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  useEffect(() => {
    // Not with each token: an answer that still arrives is streamed again after a reload.
    try {
      localStorage.setItem(id, JSON.stringify(messages));
    } catch {
      // A browser stores only a few megabytes: a chat with large files ends with the page.
    }
  }, [status]);
  useEffect(() => {
    // Browsers report a broken connection as a TypeError. Other errors come from the agent.
    if (!(error instanceof TypeError)) return;
    const timer = setTimeout(() => void resumeStream(), RETRY_MS);
    return () => clearTimeout(timer);
  }, [error, resumeStream]);
  const waiting =
    messages.at(-1)?.parts.filter(part => part.type === 'dynamic-tool' && part.state === 'approval-requested') ?? [];
  return (
    <main>
      {messages.map(message => (
        <p key={message.id} data-role={message.role}>
          {message.parts.map(part => (part.type === 'text' ? part.text : '')).join('')}
        </p>
      ))}
      {waiting.map(({ approval, toolName, input }) => (
        <fieldset key={approval.id}>
          <legend>{toolName}</legend>
          <code>{JSON.stringify(input)}</code>
          <button type="button" onClick={() => void addToolApprovalResponse({ id: approval.id, approved: true })}>
            Approve
          </button>
          <button type="button" onClick={() => void addToolApprovalResponse({ id: approval.id, approved: false })}>
            Deny
          </button>
        </fieldset>
      ))}
      <form
        action={form => void sendMessage({ text: String(form.get('text')) }, { body: { agent: form.get('agent') || undefined } })}
      >
        <input name="text" aria-label="Your question" required />
        <select name="agent" aria-label="Agent">
          <option value="">any agent</option>
          {agents.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <button type="submit">Ask</button>
        {(status === 'submitted' || status === 'streaming') && (
          <button type="button" onClick={() => void cancelTask().then(stop)}>
            Stop
          </button>
        )}
        <output>{status}</output>
      </form>
      {error !== undefined && <p>{error.message}</p>}
    </main>
  );
}

createRoot(document.getElementById('chat')).render(<Chat />);
