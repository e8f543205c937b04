import { messageOf } from '@hopline/client/outgoing';
import { useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { navigate, taskPath } from './routes.ts';

type Sent = { task?: { id: string } };

/** Sends a message. The task continues without this request. */
function send(connection: Connection, text: string, task: { id: string; contextId: string } | undefined): Promise<Sent> {
  const ids = task && { taskId: task.id, contextId: task.contextId };
  // Does not use crypto.randomUUID, which a page without TLS has only on localhost.
  const message = messageOf({ parts: [{ text }], ...ids });
  return connection.post<Sent>('/api/message:send', { message, configuration: { returnImmediately: true } });
}

export function NewTask({ connection }: { connection: Connection }) {
  return (
    <MessageForm
      label="Ask a question, as a new task"
      button="Ask"
      onSend={async text => {
        const { task } = await send(connection, text, undefined);
        if (task !== undefined) navigate(taskPath(task.id));
      }}
    />
  );
}

export function AnswerForm({ connection, task }: { connection: Connection; task: { id: string; contextId: string } }) {
  return (
    <MessageForm
      label="Answer the agent's question"
      button="Answer"
      onSend={async text => {
        await send(connection, text, task);
      }}
    />
  );
}

function MessageForm({ label, button, onSend }: { label: string; button: string; onSend: (text: string) => Promise<void> }) {
  const [text, setText] = useState('');
  const [fault, setFault] = useState('');
  const [isSending, setSending] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (text.trim() === '' || isSending) return;
    setSending(true);
    try {
      await onSend(text);
      setText('');
      setFault('');
    } catch (error) {
      setFault((error as Error).message);
    } finally {
      setSending(false);
    }
  };
  return (
    <form class="message-form" onSubmit={submit}>
      <input aria-label={label} placeholder={label} value={text} onInput={event => setText(event.currentTarget.value)} />
      <button type="submit" class="button button-primary" disabled={isSending || text.trim() === ''}>
        {button}
      </button>
      {fault !== '' && (
        <p class="notice notice-error" role="alert">
          {fault}
        </p>
      )}
    </form>
  );
}
