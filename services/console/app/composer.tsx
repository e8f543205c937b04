import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Agent } from './agents.ts';
import { useDraft } from './drafts.ts';
import { endsWord } from './input-method.ts';
import { visibleText } from './plain-text.ts';
import { agentPath, linkTo } from './routes.ts';

type Props = {
  label: string;
  button: string;
  agents: readonly Agent[];
  /** Chosen at first; empty: the skills decide. */
  agent?: string;
  /** Shows the agents as cards with their skills. */
  hasCards?: boolean;
  onSend: (text: string, agent: string | undefined) => Promise<unknown>;
  children?: ComponentChildren;
};

/** Longest text of a suggestion. */
const EXAMPLE_CHARS_MAX = 120;

/** A field for a message, and the choice of the agent that gets it. */
export function Composer({ label, button, agents, agent: initial = '', hasCards = false, onSend, children }: Props) {
  const { text, change, sent } = useDraft();
  const [agent, setAgent] = useState(initial);
  const [fault, setFault] = useState('');
  const [isSending, setSending] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    if (text.trim() === '' || isSending) return;
    setSending(true);
    try {
      await onSend(text, agent === '' ? undefined : agent);
      sent(text);
      setFault('');
    } catch (error) {
      setFault((error as Error).message);
    } finally {
      setSending(false);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && !event.shiftKey && !endsWord(event)) void submit(event);
  };
  const suggest = (example: string) => {
    change(example);
    field.current?.focus();
  };
  return (
    <form class="composer" onSubmit={submit}>
      {children}
      <div class="composer-field">
        <textarea
          ref={field}
          rows={1}
          aria-label={label}
          placeholder={label}
          value={text}
          onInput={event => change(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {!hasCards && agents.length > 1 && (
          <select aria-label="Agent" value={agent} onChange={event => setAgent(event.currentTarget.value)}>
            <option value="">any agent</option>
            {agents.map(({ name }) => (
              <option key={name} value={name}>
                {visibleText(name)}
              </option>
            ))}
          </select>
        )}
        <button type="submit" class="button button-primary" disabled={isSending || text.trim() === ''} title="Enter">
          {button}
        </button>
      </div>
      {hasCards && agents.length > 0 && <AgentCards agents={agents} agent={agent} onChoose={setAgent} onSuggest={suggest} />}
      {fault !== '' && (
        <p class="notice notice-error" role="alert">
          {visibleText(fault)}
        </p>
      )}
    </form>
  );
}

type CardsProps = {
  agents: readonly Agent[];
  agent: string;
  onChoose: (name: string) => void;
  onSuggest: (example: string) => void;
};

/** Who answers: chosen by skills, or one agent, whose skills and examples are then shown. */
function AgentCards({ agents, agent, onChoose, onSuggest }: CardsProps) {
  const chosen = agents.find(({ name }) => name === agent);
  const shown = chosen === undefined ? agents : [chosen];
  const examples = shown.flatMap(({ skills }) => skills.flatMap(skill => skill.examples)).slice(0, 4);
  return (
    <div class="agents">
      <fieldset class="agent-cards">
        <legend class="visually-hidden">Agent</legend>
        <AgentCard
          name=""
          title="Any agent"
          description="Skills decide who answers."
          isChosen={agent === ''}
          onChoose={onChoose}
        />
        {agents.map(({ name, description, isLive, isDefault }) => (
          <AgentCard
            key={name}
            name={name}
            title={visibleText(name)}
            description={visibleText(description)}
            tag={isLive ? (isDefault ? 'default' : '') : 'silent'}
            isChosen={agent === name}
            onChoose={onChoose}
          />
        ))}
      </fieldset>
      {chosen !== undefined && (
        <ul class="skills" aria-label={`Skills of ${visibleText(chosen.name)}`}>
          {chosen.skills.map(({ id, name, description }) => (
            <li key={id} class="tag" title={visibleText(description)}>
              <bdi>{visibleText(name)}</bdi>
            </li>
          ))}
          <li>
            <a class="link small" href={linkTo(agentPath(chosen.name))}>
              Card and findings
            </a>
          </li>
        </ul>
      )}
      {examples.length > 0 && (
        <p class="small examples">
          <span class="muted">Try</span>
          {examples.map(example => (
            <button key={example} type="button" class="button button-quiet" onClick={() => onSuggest(example)}>
              {visibleText(example.slice(0, EXAMPLE_CHARS_MAX))}
            </button>
          ))}
        </p>
      )}
    </div>
  );
}

type CardProps = {
  name: string;
  title: string;
  description: string;
  tag?: string;
  isChosen: boolean;
  onChoose: (name: string) => void;
};

function AgentCard({ name, title, description, tag = '', isChosen, onChoose }: CardProps) {
  return (
    <label class="agent-card">
      <input type="radio" name="agent" checked={isChosen} onChange={() => onChoose(name)} />
      <span class="agent-card-face">
        <strong>
          <bdi>{title}</bdi>
          {tag !== '' && <span class="tag">{tag}</span>}
        </strong>
        <span class="muted small">
          <bdi>{description}</bdi>
        </span>
      </span>
    </label>
  );
}
