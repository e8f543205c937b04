import { type ApprovalRequest, isTerminal, type Message, type Task } from '@hopline/a2a';
import { approvalResponse } from '@hopline/client/approval-response';
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Agent } from './agents.ts';
import { Composer } from './composer.tsx';
import type { Connection } from './connection.ts';
import { Menu } from './menu.tsx';
import { visibleText } from './plain-text.ts';
import { navigate, taskPath } from './routes.ts';
import { send, type Target } from './send-message.ts';

type Props = {
  connection: Connection;
  task: Task;
  /** The newest state. */
  state: string;
  /** The call that the agent asks to approve. */
  approval: ApprovalRequest | undefined;
  agents: readonly Agent[];
  /** The event at the playhead; undefined while the page follows the task. */
  forkCursor: string | undefined;
};

/** The field below a conversation: it answers the agent's question, continues the conversation, or forks it at the playhead. */
export function TaskComposer({ connection, task, state, approval, agents, forkCursor }: Props) {
  const [wantsFork, setFork] = useState(false);
  const canFork = forkCursor !== undefined && forkCursor !== '';
  const isAsked = state === 'input-required';
  const hasEnded = /^(?:completed|failed|canceled|rejected)$/.test(state) || isTerminal(task.status.state);
  const isFork = canFork && (wantsFork || !(isAsked || hasEnded));
  if (!isFork && !isAsked && !hasEnded) return null;
  const target: Target = isFork
    ? { kind: 'fork', taskId: task.id, cursor: forkCursor }
    : isAsked
      ? { kind: 'answer', task }
      : { kind: 'new', contextId: task.contextId };
  const label = isFork
    ? 'Say something else from here, as a new task'
    : isAsked
      ? 'Answer the agent’s question'
      : 'Continue this conversation';
  const forkChoice = canFork && (isAsked || hasEnded) && (
    <label class="small composer-fork">
      <input type="checkbox" checked={wantsFork} onChange={event => setFork(event.currentTarget.checked)} />
      <span>
        Fork at the playhead <span class="muted">the agents know only what is shown</span>
      </span>
    </label>
  );
  if (approval !== undefined && isAsked && !isFork) {
    const decide = (approved: boolean, reason: string) =>
      send(connection, { parts: approvalResponse(approval, approved, reason), target });
    return (
      <ApprovalForm key={approval.callId} approval={approval} onDecide={decide}>
        {forkChoice}
      </ApprovalForm>
    );
  }
  return (
    <Composer
      label={label}
      button={isFork ? 'Fork' : isAsked ? 'Answer' : 'Send'}
      agents={isAsked && !isFork ? [] : agents}
      agent={agentOf(task) ?? ''}
      onSend={async (text, agent) => {
        const id = await send(connection, { parts: [{ text }], target, agent });
        if (id !== undefined && id !== task.id) navigate(taskPath(id));
      }}
    >
      {forkChoice}
    </Composer>
  );
}

type ApprovalProps = {
  approval: ApprovalRequest;
  onDecide: (approved: boolean, reason: string) => Promise<unknown>;
  children: ComponentChildren;
};

/** The call that waits, with all of its arguments, and the decision. Enter in the field of the reason refuses: nothing approves by accident. */
function ApprovalForm({ approval, onDecide, children }: ApprovalProps) {
  const [reason, setReason] = useState('');
  const [fault, setFault] = useState('');
  const [isSending, setSending] = useState(false);
  // The agent may ask again, even for the same call.
  useEffect(() => setSending(false), [approval]);
  const decide = async (approved: boolean) => {
    setSending(true);
    setFault('');
    try {
      // The state that follows removes this form.
      await onDecide(approved, reason);
    } catch (error) {
      setFault((error as Error).message);
      setSending(false);
    }
  };
  const tool = visibleText(approval.tool);
  return (
    <form
      class="composer approval"
      aria-label="Approval of a call"
      onSubmit={event => {
        event.preventDefault();
        if (!isSending) void decide(false);
      }}
    >
      {children}
      <p class="approval-head">
        Run{' '}
        <strong>
          <bdi>{tool}</bdi>
        </strong>{' '}
        with these arguments?
      </p>
      <pre class="approval-arguments" tabIndex={0} role="region" aria-label={`Arguments of ${tool}`}>
        {visibleText(JSON.stringify(approval.arguments, null, 2))}
      </pre>
      <div class="composer-field">
        <input
          class="approval-reason"
          aria-label="Reason"
          placeholder="Reason (optional)"
          value={reason}
          onInput={event => setReason(event.currentTarget.value)}
        />
        <button type="submit" class="button" disabled={isSending}>
          Refuse
        </button>
        <button type="button" class="button button-primary" disabled={isSending} onClick={() => void decide(true)}>
          Approve
        </button>
      </div>
      {fault !== '' && (
        <p class="notice notice-error" role="alert">
          {visibleText(fault)}
        </p>
      )}
    </form>
  );
}

/** The agent that the newest message names. */
function agentOf({ history = [] }: Task): string | undefined {
  const agent = history.findLast(({ role }) => role === 'ROLE_USER')?.metadata?.agent;
  return typeof agent === 'string' ? agent : undefined;
}

type RerunProps = { connection: Connection; id: string; message: Message; agents: readonly Agent[] };

/** Asks the question of the task again, as a new task, with the same agents or another one. */
export function RerunMenu({ connection, id, message, agents }: RerunProps) {
  const named = typeof message.metadata?.agent === 'string' ? message.metadata.agent : undefined;
  const rerun = async (agent: string | undefined) => {
    const again = await send(connection, { parts: message.parts, target: { kind: 'rerun', taskId: id }, agent });
    if (again !== undefined) navigate(taskPath(again));
  };
  const choose = (agent: string | undefined) => void rerun(agent).catch((error: Error) => alert(error.message));
  return (
    <Menu label="Ask this question again" text="Run again">
      <button type="button" class="menu-item" onClick={() => choose(named)}>
        <span>As before</span>
      </button>
      {agents.map(({ name }) => (
        <button key={name} type="button" class="menu-item" onClick={() => choose(name)}>
          <span>With {visibleText(name)}</span>
        </button>
      ))}
    </Menu>
  );
}
