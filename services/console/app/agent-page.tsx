import type { CardReport } from '@hopline/a2a';
import { type Agent, useAgentDirectory } from './agents.ts';
import type { Connection } from './connection.ts';
import { visibleText } from './plain-text.ts';

const CAPABILITIES: Readonly<Record<string, string>> = {
  streaming: 'streaming',
  pushNotifications: 'push notifications',
  extendedAgentCard: 'extended card for authenticated callers',
  stateTransitionHistory: 'history of states',
};

/** The card of one agent, its skills, and the findings about the card. */
export function AgentPage({ name, connection }: { name: string; connection: Connection }) {
  const { agents, cluster, fault } = useAgentDirectory(connection);
  const agent = agents?.find(one => one.name === name);
  return (
    <div class="agent">
      <div class="toolbar">
        <h1>
          <bdi>{visibleText(name)}</bdi>
        </h1>
        {agent !== undefined && <State agent={agent} />}
      </div>
      {fault !== '' && (
        <p class="notice notice-error" role="alert">
          {visibleText(fault)}
        </p>
      )}
      {agents === undefined && fault === '' && <p class="muted pad">Reading …</p>}
      {agents !== undefined && agent === undefined && <p class="muted pad">The cluster has no agent of this name.</p>}
      {agent !== undefined && (
        <>
          <p class="agent-about">
            <bdi>{visibleText(agent.description)}</bdi>
          </p>
          <section class="card table-card">
            <h2>Card</h2>
            {agent.card === undefined && (
              <p class="muted small">
                The agent has no card of its own: its code runs in this cluster, or its sub-agent is of an earlier version.
                Clients reach it through the cluster, whose card is shown here.
              </p>
            )}
            <CardFields card={agent.card ?? cluster} />
          </section>
          <Findings card={agent.card ?? cluster} isOwn={agent.card !== undefined} />
          <Skills agent={agent} />
        </>
      )}
    </div>
  );
}

function State({ agent: { isLive, isDefault, fault } }: { agent: Agent }) {
  return (
    <span class="small">
      <span class={`dot ${isLive && fault === undefined ? 'dot-on' : 'dot-off'}`} /> {isLive ? 'live' : 'silent'}
      {fault !== undefined && `, ${visibleText(fault)}`}
      {isDefault && <span class="tag">default</span>}
    </span>
  );
}

function CardFields({ card }: { card: CardReport | undefined }) {
  if (card === undefined) return <p class="muted">The card of the cluster cannot be read.</p>;
  const { name, version, provider, interfaces, capabilities, extensions, inputModes, outputModes } = card;
  return (
    <dl class="fields">
      <Field name="Name" values={[name]} />
      <Field name="Version" values={[version]} />
      <Field name="Provider" values={[provider]} />
      <Field name="Interfaces" values={interfaces} />
      <Field name="Capabilities" values={capabilities.map(one => CAPABILITIES[one] ?? one)} />
      <Field name="Extensions" values={extensions} />
      <Field name="Input" values={inputModes} />
      <Field name="Output" values={outputModes} />
    </dl>
  );
}

function Field({ name, values }: { name: string; values: readonly string[] }) {
  const shown = values.filter(value => value !== '');
  return (
    <div>
      <dt class="muted">{name}</dt>
      <dd>
        {shown.length === 0 && <span class="muted">–</span>}
        {shown.map(value => (
          <span key={value} class="field-value">
            <bdi>{visibleText(value)}</bdi>
          </span>
        ))}
      </dd>
    </div>
  );
}

/** Sentences of Hopline about the card, which have no text of it. */
function Findings({ card, isOwn }: { card: CardReport | undefined; isOwn: boolean }) {
  if (card === undefined) return null;
  const { findings } = card;
  return (
    <section class="card table-card" aria-label="Compliance">
      <h2>Compliance</h2>
      {findings.length === 0 ? (
        <p>
          <span class="dot dot-on" /> No findings: the card {isOwn ? '' : 'of the cluster '}follows A2A.
        </p>
      ) : (
        <ul class="findings">
          {findings.map(finding => (
            <li key={finding}>{visibleText(finding)}</li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Skills({ agent: { skills } }: { agent: Agent }) {
  return (
    <section class="card table-card">
      <h2>Skills</h2>
      {skills.length === 0 && <p class="muted">The agent lists no skills.</p>}
      {skills.map(({ id, name, description, tags, examples }) => (
        <article key={id} class="skill">
          <h3>
            <bdi>{visibleText(name)}</bdi> <code class="muted skill-id">{visibleText(id)}</code>
          </h3>
          {description !== '' && (
            <p>
              <bdi>{visibleText(description)}</bdi>
            </p>
          )}
          {tags.length > 0 && (
            <ul class="skills" aria-label={`Tags of ${visibleText(name)}`}>
              {tags.map(tag => (
                <li key={tag} class="tag">
                  <bdi>{visibleText(tag)}</bdi>
                </li>
              ))}
            </ul>
          )}
          {examples.length > 0 && (
            <ul class="skill-examples" aria-label={`Examples of ${visibleText(name)}`}>
              {examples.map(example => (
                <li key={example}>
                  <bdi>{visibleText(example)}</bdi>
                </li>
              ))}
            </ul>
          )}
        </article>
      ))}
    </section>
  );
}
