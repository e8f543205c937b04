import assert from 'node:assert/strict';
import { defineAgent, serveAgent } from '@hopline/agent';
import { DEFAULT_SETTINGS } from '@hopline/coalesce';
import { AllowedHosts, createHealth } from '@hopline/lifecycle';
import { type AgentRegistration, type Log, TextPace } from '@hopline/log';
import { openJetStreamLog } from '@hopline/log-jetstream';
import { PROFILES } from '@hopline/profiles';
import { createHopMetrics, createLogger } from '@hopline/telemetry';
import { webhookRules } from '@hopline/webhook-guard';
import { createIngress } from '../../services/ingress/src/ingress.ts';
import { createRelay } from '../../services/relay/src/relay.ts';
import { SkillPlanner } from '../../services/supervisor/src/skill-planner.ts';
import { createSupervisor } from '../../services/supervisor/src/supervisor.ts';
import { messageParams, rpc } from '../support/cluster/a2a-stream.ts';
import { startNats } from '../support/nats/nats-server.ts';

/** Milliseconds between two renewals of leases and of agents' entries: too long for one while a task is measured. */
const HEARTBEAT_MS = 120_000;
const LEASE_MS = 3 * HEARTBEAT_MS;

/**
 * How often the test renews the agent's entry until the task streams, in milliseconds. On a busy machine the entry would otherwise expire
 * before that.
 */
const RENEWAL_MS = 1_000;

/** One task of a running cluster. */
export type StreamedTask = {
  /** The agent yields one token. Resolves when the client has read it. */
  pass(): Promise<void>;
  close(): Promise<void>;
};

/**
 * The services of a cluster in this process, each with its own connection to a real nats-server; an agent made by `defineAgent`, which the
 * supervisor calls; and a client that reads the SSE stream of one task.
 */
export async function openStreamedTask(): Promise<StreamedTask> {
  const nats = await startNats();
  const logger = createLogger({ service: 'test', instance: 'test', level: 'silent' });
  const metrics = createHopMetrics('test');
  const reporting = { logger, metrics };
  const open = (name: string) => openJetStreamLog({ servers: nats.url, name });
  const logs = {
    relay: await open('relay'),
    supervisor: await open('supervisor'),
    agent: await open('agent'),
    ingress: await open('ingress'),
  };
  const leases = { heartbeatMs: HEARTBEAT_MS, leaseMs: LEASE_MS };
  const relay = await createRelay({ log: logs.relay, instance: 'relay', coalesce: DEFAULT_SETTINGS, ...leases, ...reporting });
  const source = new TokenSource();
  const stop = new AbortController();
  const registered = Promise.withResolvers<AgentRegistration>();
  const serving = serveAgent({
    log: logs.agent,
    name: 'agent',
    url: 'http://127.0.0.1:9/',
    slots: 1,
    signal: stop.signal,
    heartbeatMs: HEARTBEAT_MS,
    pace: new TextPace(DEFAULT_SETTINGS),
    ...reporting,
    agent: defineAgent({ name: 'agent', description: 'Yields a token on request', run: () => source.tokens() }),
    onRegistered: entry => registered.resolve(entry),
  });
  const renewal = renew(logs.agent, await registered.promise);
  const supervisor = await createSupervisor({
    log: logs.supervisor,
    planner: new SkillPlanner(),
    profiles: PROFILES,
    displayName: 'Supervisor',
    slots: 1,
    agentGoneMs: HEARTBEAT_MS,
    agentWaitMs: HEARTBEAT_MS,
    pace: new TextPace(DEFAULT_SETTINGS),
    ...reporting,
  });
  const ingress = await createIngress({
    log: logs.ingress,
    profile: 'caipe',
    publicUrl: undefined,
    limits: {},
    ...reporting,
    card: { name: 'test', description: 'test', version: '0', skills: 'public', extended: false, streaming: true, push: false },
    webhooks: webhookRules({ HOPLINE_WEBHOOK_ALLOW: undefined, HOPLINE_WEBHOOK_HTTP: false }),
    probes: { health: createHealth(), metricsText: async () => '', loopLagMsMax: 60_000, hosts: new AllowedHosts() },
  });
  const url = await ingress.listen('127.0.0.1', 0);
  const client = new TextReader(await rpc(url, { params: messageParams('go') }));
  let tokens = 0;
  return {
    pass: async () => {
      tokens += 1;
      const token = `token-${tokens};`;
      source.yield(token);
      await client.readUntil(token);
      clearInterval(renewal);
    },
    close: async () => {
      source.end();
      await client.readUntil(undefined);
      stop.abort();
      await serving;
      await supervisor.stop();
      await ingress.close();
      await relay.stop();
      await Promise.all(Object.values(logs).map(log => log.close()));
      await nats.stop();
    },
  };
}

function renew({ agents }: Log, entry: AgentRegistration): NodeJS.Timeout {
  let { heartbeat } = entry;
  return setInterval(() => {
    heartbeat += 1;
    // A failed renewal is followed by the next one.
    agents.put(`${entry.name}.renewed`, { ...entry, heartbeat }).catch(() => {});
  }, RENEWAL_MS);
}

/** Tokens of an agent's turn, one each time the test asks for it. */
class TokenSource {
  #next = Promise.withResolvers<string | undefined>();

  async *tokens(): AsyncGenerator<string> {
    for (;;) {
      const token = await this.#next.promise;
      this.#next = Promise.withResolvers();
      if (token === undefined) return;
      yield token;
    }
  }

  yield(token: string): void {
    this.#next.resolve(token);
  }

  end(): void {
    this.#next.resolve(undefined);
  }
}

/** A client that uses no code of the project, because such code would count as the server's. */
class TextReader {
  readonly #chunks: AsyncIterator<string>;
  #text = '';

  constructor({ body }: Response) {
    assert.ok(body !== null);
    this.#chunks = body.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  }

  /** Reads until it has received the text, or to the end if the text is undefined. */
  async readUntil(text: string | undefined): Promise<void> {
    while (text === undefined || !this.#text.includes(text)) {
      const { done, value } = await this.#chunks.next();
      assert.ok(text === undefined || done !== true, `the stream ended before ${text}: ${this.#text}`);
      if (done === true) return;
      this.#text += value;
    }
    this.#text = '';
  }
}
