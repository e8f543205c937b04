import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport } from 'ai';
import { useEffect } from 'react';
import { createRoot } from 'react-dom/client';

// The id of the chat is in the address, so that a reload and a second tab show the same chat.
const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;

const transport = new DefaultChatTransport({ api: 'http://127.0.0.1:8000/ui/chat', body: { agent: 'NAME' } });

function Chat() {
  const stored = JSON.parse(localStorage.getItem(id) ?? '[]');
  const { messages, sendMessage, resumeStream, status } = useChat({ id, messages: stored, resume: true, transport });
  useEffect(() => localStorage.setItem(id, JSON.stringify(messages)), [messages]);
  return (
    <main>
      {messages.map(message => (
        <p key={message.id}>
          <b>{message.role === 'user' ? 'You: ' : 'NAME: '}</b>
          {message.parts.map(part => (part.type === 'text' ? part.text : '')).join('')}
        </p>
      ))}
      <form action={form => void sendMessage({ text: String(form.get('text')) })}>
        <input name="text" aria-label="Your question" placeholder="A city" required /> <button type="submit">Ask</button> {status}
      </form>
      {status === 'error' && (
        <button type="button" onClick={() => resumeStream()}>
          Continue
        </button>
      )}
    </main>
  );
}

createRoot(document.getElementById('chat')!).render(<Chat />);
