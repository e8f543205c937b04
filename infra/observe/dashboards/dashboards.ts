import { bars, type Dashboard, graph, largest, quantile, ranked, rate, stat, sum, table, total } from './panels.ts';

const HOPS = 'hopline_hop_duration_seconds';
const FIRST_TOKEN = 'hopline_time_to_first_token_seconds';
const CHUNK = 'hopline_chunk_duration_seconds';
const agentVariable = { name: 'agent', label: 'Agent', query: 'label_values(hopline_turns_ended_total{job=~"$job"}, agent)' };
const ofAgent = 'agent=~"$agent"';
/** The hops of turns (docs/reference/hops.md), which follow each other. */
const TURN_HOPS = 'accept|work_queue|plan|agent_queue|agent|tool|talk|finish|redelivery|compose|takeover';
const ofTurns = `hop=~"${TURN_HOPS}"`;
const ofChunks = `hop=~"publish|hold|wait_for_append|append|splice|socket"`;
const PATH = 'hopline_path_time_seconds_total{job=~"$job"}';
/** Share in the critical paths of measured turns. */
const shareOf = (labels: string) => `sum by (${labels}) (increase(${PATH}[$__range])) / scalar(sum(increase(${PATH}[$__range])))`;

const overview: Dashboard = {
  uid: 'hopline-overview',
  title: 'Hopline / Overview',
  description: 'What an on-call engineer asks first: do clients get their text, is anything lost, which part is slow?',
  variables: [],
  rows: [
    {
      title: 'Is anything wrong?',
      panels: [
        stat(
          'Processes up',
          'Processes that answer a scrape. Fewer than you started: look at the table of processes below.',
          'none',
          {
            up: 'sum(up{job=~"$job"})',
            down: 'sum(1 - up{job=~"$job"})',
          },
        ),
        stat(
          'Gaps',
          'Gaps that resumed clients received: events are missing. 0 is normal; see RUNBOOK, HoplineGaps.',
          'none',
          total('hopline_gaps_total'),
          {
            redFrom: 1,
          },
        ),
        stat(
          'Rejected records',
          'Stored records that a relay could not read or apply. 0 is normal; see RUNBOOK, HoplineRecordsRejected.',
          'none',
          total('hopline_records_rejected_total'),
          { redFrom: 1 },
        ),
        stat(
          'Dead letters',
          'Work items that failed in all attempts, so that their tasks failed. See RUNBOOK, HoplineDeadLetters.',
          'none',
          total('hopline_dead_letters_total'),
          { redFrom: 1 },
        ),
        stat(
          'Abandoned webhooks',
          'Webhooks that receive no notifications until their clients set them again.',
          'none',
          total('hopline_webhooks_abandoned_total'),
          { redFrom: 1 },
        ),
        stat(
          'Lost owners',
          'Shards whose relay or notifier died in the shown range.',
          'none',
          total('hopline_takeovers_total', { where: 'reason="lost"' }),
          {
            redFrom: 1,
          },
        ),
      ],
    },
    {
      title: 'What clients see',
      panels: [
        graph(
          'Time to first token',
          'Time from receiving a request to the first text of an agent (not the plan) on the client’s socket, including the agent’s own time.',
          's',
          {
            p50: quantile(0.5, FIRST_TOKEN),
            p95: quantile(0.95, FIRST_TOKEN),
            p99: quantile(0.99, FIRST_TOKEN),
          },
        ),
        graph(
          'Age of text at the client',
          'A token’s creation by the agent to the client’s socket: what Hopline adds. The hold of the coalescer is part of it.',
          's',
          {
            p50: quantile(0.5, CHUNK),
            p95: quantile(0.95, CHUNK),
            p99: quantile(0.99, CHUNK),
          },
        ),
        graph(
          'Requests',
          'Requests of A2A clients by operation.',
          'reqps',
          { '{{operation}}': rate('hopline_requests_total', { by: 'operation' }) },
          {
            stacked: true,
          },
        ),
        graph(
          'Failed requests',
          'Share of requests that failed because of the server, and because of the caller.',
          'percentunit',
          {
            'server error': `${rate('hopline_requests_total', { where: 'outcome="server_error"' })} / ${rate('hopline_requests_total')}`,
            'client error': `${rate('hopline_requests_total', { where: 'outcome="client_error"' })} / ${rate('hopline_requests_total')}`,
          },
        ),
        graph(
          'Tasks that ended',
          'Tasks by their terminal state.',
          'ops',
          { '{{state}}': rate('hopline_tasks_ended_total', { by: 'state' }) },
          { stacked: true },
        ),
        graph(
          'Open tasks',
          'Open tasks by state. A `submitted` task that stays open means that no supervisor or agent takes its work.',
          'none',
          {
            '{{state}}': sum('hopline_open_tasks', { by: 'state' }),
          },
        ),
      ],
    },
    {
      title: 'Where does the time go?',
      panels: [
        bars(
          'Share of each hop',
          'What delayed the ends of turns: share of each hop in their critical paths. The longest bar is where to look first. Relays measure a sample.',
          'percentunit',
          { '{{hop}} {{agent}}': `topk(10, ${shareOf('hop, agent')})` },
        ),
        graph(
          'Share of each hop over time',
          'A hop whose band grows is what became slower: critical paths of measured turns.',
          'percentunit',
          {
            '{{hop}}': `${rate('hopline_path_time_seconds_total', { by: 'hop' })} / scalar(${rate('hopline_path_time_seconds_total')})`,
          },
          { stacked: true },
        ),
        graph('Hops of turns, p95', 'Time in each hop. docs/reference/hops.md defines where each begins and ends.', 's', {
          '{{hop}}': quantile(0.95, HOPS, { by: 'hop', where: ofTurns }),
        }),
        graph(
          'Hops of one chunk, p95',
          'From a token to the client’s socket. Chunks overlap each other and the agent that talks.',
          's',
          { '{{hop}}': quantile(0.95, HOPS, { by: 'hop', where: ofChunks }) },
        ),
      ],
    },
    {
      title: 'Processes',
      panels: [
        graph('CPU', 'Cores in use by process.', 'short', {
          '{{instance}}': rate('process_cpu_time_seconds_total', { by: 'instance' }),
        }),
        graph('Memory', 'Resident memory by process.', 'bytes', {
          '{{instance}}': sum('process_memory_usage_bytes', { by: 'instance' }),
        }),
        graph('Event-loop delay, p99', 'Above 0.1 s a process answers late: it computes too much, or has too little CPU.', 's', {
          '{{instance}}': 'max by (instance) (nodejs_eventloop_delay_p99_seconds{job=~"$job"})',
        }),
      ],
    },
  ],
};

const relay: Dashboard = {
  uid: 'hopline-relay',
  title: 'Hopline / Relay and shards',
  description: 'How the relays fold inputs into facts: lag, coalescing, owners.',
  variables: [],
  rows: [
    {
      title: 'Shards',
      panels: [
        graph('Lag by shard', 'Input records of a shard that its relay has not read. It returns to 0 within seconds.', 'none', {
          'shard {{shard}}': 'max by (shard) (hopline_shard_lag{job=~"$job"})',
        }),
        graph(
          'Oldest input by shard',
          'Age of the oldest stored input that its relay has not folded. Its task stands still for that long. See RUNBOOK, HoplineInputsOld.',
          's',
          { 'shard {{shard}}': 'max by (shard) (hopline_shard_oldest_input_seconds{job=~"$job"})' },
        ),
        graph(
          'Owned shards',
          'Shards by owner. The sum is the number of shards (HOPLINE_SHARDS) for relays and for notifiers.',
          'none',
          {
            '{{instance}}': sum('hopline_owned_shards', { by: 'instance' }),
          },
          { stacked: true },
        ),
        graph('Takeovers', 'Shards that got a new owner: `lost` means that the owner died.', 'none', {
          '{{service}} {{reason}}': total('hopline_takeovers_total', { by: 'service, reason' }).replace(
            '$__range',
            '$__rate_interval',
          ),
        }),
        graph(
          'Shard restarts and conflicts',
          'A restart reads the shard again. Conflicts appear when an owner was replaced; nothing is lost.',
          'none',
          {
            'restart {{reason}}': rate('hopline_shard_restarts_total', { by: 'reason' }),
            conflict: rate('hopline_append_conflicts_total'),
          },
        ),
        graph(
          'Rejected inputs',
          'Inputs that produced no fact, by reason. `stale_attempt`, `terminal` and `duplicate_message` are normal after retries and cancels.',
          'ops',
          {
            '{{reason}}': rate('hopline_inputs_rejected_total', { by: 'reason' }),
          },
        ),
        graph(
          'Inputs not decided yet',
          'Received inputs minus those with an outcome. It must return to 0 when no task runs.',
          'none',
          {
            inputs: `${sum('hopline_inputs_total', { where: 'outcome="received"' })} - ${sum('hopline_inputs_total', { where: 'outcome!="received"' })}`,
          },
        ),
      ],
    },
    {
      title: 'Coalescing',
      panels: [
        graph('Tokens and chunks', 'Tokens of agents, and the chunks that they became.', 'ops', {
          tokens: rate('hopline_tokens_total'),
          chunks: rate('hopline_chunks_total'),
        }),
        graph('Tokens in a chunk', 'How many tokens one event holds.', 'short', {
          '{{agent}}': `${rate('hopline_tokens_total', { by: 'agent' })} / ${rate('hopline_chunks_total', { by: 'agent' })}`,
        }),
        graph(
          'Why chunks were released',
          '`delay` and `age`: the coalescer waited as long as it is allowed to. `first`: an agent’s first text leaves at once.',
          'ops',
          {
            '{{reason}}': rate('hopline_chunks_total', { by: 'reason' }),
          },
          { stacked: true },
        ),
        graph('Hold', 'How long text waits so that tokens become one event.', 's', {
          p50: quantile(0.5, HOPS, { where: 'hop="hold"' }),
          p99: quantile(0.99, HOPS, { where: 'hop="hold"' }),
        }),
        graph(
          'Append',
          'Append of facts until NATS has acknowledged it. If it rises, the disk or the quorum of NATS is slow.',
          's',
          {
            p50: quantile(0.5, 'hopline_append_duration_seconds'),
            p99: quantile(0.99, 'hopline_append_duration_seconds'),
          },
        ),
        graph(
          'Wait for the previous append',
          'One append per task is in flight. Rising with load is normal: chunks get larger.',
          's',
          {
            p99: quantile(0.99, HOPS, { where: 'hop="wait_for_append"' }),
          },
        ),
      ],
    },
  ],
};

const agents: Dashboard = {
  uid: 'hopline-agents',
  title: 'Hopline / Agents',
  description: 'Which agent is slow, fails, or has no free slot?',
  variables: [agentVariable],
  rows: [
    {
      title: 'Today',
      panels: [
        table(
          'Agents',
          'Time to the first token of each agent by its own clock, p95 in the shown range: the slowest first.',
          's',
          {
            'p95 {{agent}}': `sort_desc(histogram_quantile(0.95, sum by (le, agent) (rate(${HOPS}_bucket{job=~"$job", hop="agent", ${ofAgent}}[$__range]))))`,
          },
        ),
        bars(
          'Failed turns',
          'Share of turns of each agent that failed.',
          'percentunit',
          {
            '{{agent}}': `sum by (agent) (increase(hopline_turns_ended_total{job=~"$job", outcome="failed", ${ofAgent}}[$__range])) / sum by (agent) (increase(hopline_turns_ended_total{job=~"$job", ${ofAgent}}[$__range]))`,
          },
          { width: 12 },
        ),
      ],
    },
    {
      title: 'Over time',
      panels: [
        graph('First token of the agent', 'Work taken to the agent’s first token, tools excluded.', 's', {
          '{{agent}}': quantile(0.95, HOPS, { by: 'agent', where: `hop="agent", ${ofAgent}` }),
        }),
        graph('Wait for a free slot', 'If it rises, every process of the agent is busy: add replicas or slots.', 's', {
          '{{agent}}': quantile(0.95, HOPS, { by: 'agent', where: `hop="agent_queue", ${ofAgent}` }),
        }),
        graph(
          'Wait for redelivery',
          'From the last output of an attempt whose worker died or stopped to the next attempt.',
          's',
          {
            '{{agent}}': quantile(0.95, HOPS, { by: 'agent', where: `hop="redelivery", ${ofAgent}` }),
          },
        ),
        graph('Talk', 'First token to last token, without tools.', 's', {
          '{{agent}}': quantile(0.95, HOPS, { by: 'agent', where: `hop="talk", ${ofAgent}` }),
        }),
        graph('Duration of turns', 'Work taken to the end of the turn.', 's', {
          '{{agent}}': quantile(0.95, 'hopline_turn_duration_seconds', { by: 'agent', where: ofAgent }),
        }),
        graph('Running turns', 'Turns that run now.', 'none', {
          '{{agent}}': sum('hopline_active_tasks', { by: 'agent', where: ofAgent }),
        }),
        graph(
          'Longest silence',
          'Time since the last event of the running turn that has been silent longest. A line that rises by a second each second is a turn that hangs; see RUNBOOK, HoplineAgentSilent.',
          's',
          { '{{agent}}': `max by (agent) (hopline_turn_silence_seconds{job=~"$job", ${ofAgent}})` },
        ),
        graph(
          'Ends of turns',
          'Turns by outcome.',
          'ops',
          { '{{outcome}}': rate('hopline_turns_ended_total', { by: 'outcome', where: ofAgent }) },
          { stacked: true },
        ),
        graph('Redelivered work', '`redelivery`: its worker died. `requeue`: its worker shut down gracefully.', 'ops', {
          '{{agent}} {{reason}}': rate('hopline_redeliveries_total', { by: 'agent, reason', where: ofAgent }),
        }),
        graph('Tools', 'Duration of tool calls.', 's', {
          '{{agent}}': quantile(0.95, HOPS, { by: 'agent', where: `hop="tool", ${ofAgent}` }),
        }),
        graph('Tokens of models', '`cached` is a part of `input`, `reasoning` a part of `output`.', 'ops', {
          '{{agent}} {{model}} {{kind}}': rate('hopline_tenant_model_tokens_total', { by: 'agent, model, kind', where: ofAgent }),
        }),
        graph('Model steps', 'Duration of one model step.', 's', {
          '{{agent}} {{gen_ai_request_model}}': quantile(0.95, 'gen_ai_client_operation_duration_seconds', {
            by: 'agent, gen_ai_request_model',
            where: ofAgent,
          }),
        }),
        graph('Tokens of one model step', 'Input and output of one step.', 'none', {
          '{{gen_ai_request_model}} {{gen_ai_token_type}}': quantile(0.95, 'gen_ai_client_token_usage', {
            by: 'gen_ai_request_model, gen_ai_token_type',
            where: ofAgent,
          }),
        }),
        bars(
          'Cost of models by agent',
          'In the shown range and the currency of HOPLINE_MODEL_PRICES_FILE. Empty without that file.',
          'short',
          ranked('hopline_tenant_model_cost_total', ['agent', 'model'], ofAgent),
        ),
        graph('Skipped events', 'Events of an agent that its adapter did not understand.', 'ops', {
          '{{agent}} {{reason}}': rate('hopline_agent_events_skipped_total', { by: 'agent, reason', where: ofAgent }),
        }),
      ],
    },
  ],
};

const ingress: Dashboard = {
  uid: 'hopline-ingress',
  title: 'Hopline / Ingress and viewers',
  description: 'Requests, streams, resumes and webhooks.',
  variables: [],
  rows: [
    {
      title: 'Requests',
      panels: [
        graph(
          'By binding',
          'Requests by transport.',
          'reqps',
          { '{{binding}}': rate('hopline_requests_total', { by: 'binding' }) },
          { stacked: true },
        ),
        graph(
          'By outcome',
          '`client_gone`: the client left before its answer.',
          'reqps',
          { '{{outcome}}': rate('hopline_requests_total', { by: 'outcome' }) },
          { stacked: true },
        ),
        graph('Duration', 'Request to response, or for a stream to its acceptance.', 's', {
          '{{operation}}': quantile(0.95, 'hopline_request_duration_seconds', { by: 'operation' }),
        }),
        graph('Errors', 'Requests answered with an error, by code.', 'reqps', {
          '{{reason}}': rate('hopline_request_errors_total', { by: 'reason' }),
        }),
      ],
    },
    {
      title: 'Viewers',
      panels: [
        graph('Open streams', 'Open streams and waiting sends by process.', 'none', {
          '{{instance}}': sum('hopline_open_streams', { by: 'instance' }),
        }),
        graph('Resumes and gaps', 'Clients that came back with a cursor, and gaps that they received.', 'ops', {
          resumes: rate('hopline_resumes_total'),
          gaps: rate('hopline_gaps_total'),
        }),
        graph(
          'Streams that the server ended',
          '`slow_viewer`: the client reads too slowly. `drain`: the process shuts down gracefully.',
          'ops',
          {
            '{{reason}}': rate('hopline_viewers_cut_total', { by: 'reason' }),
          },
        ),
        graph('Bytes', 'Bytes read from and written to clients.', 'Bps', {
          received: rate('hopline_received_bytes_total', { where: 'service="ingress"' }),
          sent: rate('hopline_sent_bytes_total', { where: 'service="ingress"' }),
        }),
        graph('Fact to socket', 'The log’s copy of a fact to the client’s socket.', 's', {
          '{{hop}}': quantile(0.99, HOPS, { by: 'hop', where: 'hop=~"append|splice|socket"' }),
        }),
      ],
    },
    {
      title: 'Webhooks',
      panels: [
        graph('Deliveries', 'Requests to webhooks by outcome.', 'ops', {
          '{{outcome}}': rate('hopline_webhook_deliveries_total', { by: 'outcome' }),
        }),
        graph('Age of notifications', 'A fact’s append to its acceptance by the webhook.', 's', {
          p95: quantile(0.95, HOPS, { where: 'hop="webhook"' }),
        }),
        graph(
          'Oldest event that waits',
          'Also while all workers of the notifier are taken, without webhooks that fail. See RUNBOOK, HoplineWebhooksLate.',
          's',
          { '{{instance}}': 'max by (instance) (hopline_webhook_oldest_event_seconds{job=~"$job"})' },
        ),
        graph(
          'Retries and abandoned webhooks',
          'Retries are normal while a receiver is down. An abandoned webhook receives nothing more.',
          'ops',
          {
            retries: rate('hopline_webhook_retries_total'),
            'abandoned {{reason}}': rate('hopline_webhooks_abandoned_total', { by: 'reason' }),
          },
        ),
      ],
    },
  ],
};

const tenants: Dashboard = {
  uid: 'hopline-tenants',
  title: 'Hopline / Tenants',
  description:
    'Who is the load, who gets 429, whose tasks fill the log, which shard is hot? A process names its 20 busiest tenants and callers; all others are `other`.',
  variables: [],
  rows: [
    {
      title: 'Who is the load?',
      panels: [
        bars(
          'Time of agents',
          'Time for which turns took slots of agents, in the shown range. The load that costs most.',
          's',
          ranked('hopline_tenant_turn_time_seconds_total', ['tenant']),
        ),
        bars('Turns', 'Turns that messages began, in the shown range.', 'none', ranked('hopline_tenant_turns_total', ['tenant'])),
        bars('Requests', 'Requests of clients, in the shown range.', 'none', ranked('hopline_tenant_requests_total', ['tenant'])),
        graph(
          'Turns over time',
          'Turns that messages began, by tenant.',
          'ops',
          { '{{tenant}}': rate('hopline_tenant_turns_total', { by: 'tenant' }) },
          { stacked: true, width: 12 },
        ),
        bars(
          'Cost of models',
          'In the shown range and the currency of HOPLINE_MODEL_PRICES_FILE. Empty without that file.',
          'short',
          ranked('hopline_tenant_model_cost_total', ['tenant']),
        ),
        bars(
          'Tokens of models',
          'Input and output tokens of models, in the shown range.',
          'none',
          ranked('hopline_tenant_model_tokens_total', ['tenant', 'kind']),
        ),
        bars(
          'Callers',
          'Requests by tenant and hash of the caller, in the shown range. The runbook shows how to compute the hash of a subject.',
          'none',
          ranked('hopline_tenant_requests_total', ['tenant', 'caller']),
          { width: 12 },
        ),
      ],
    },
    {
      title: 'Who gets 429?',
      panels: [
        bars(
          'Refused, by limit',
          'Requests answered with 429 in the shown range, by tenant and limit.',
          'none',
          ranked('hopline_tenant_requests_refused_total', ['tenant', 'reason']),
        ),
        bars(
          'Refused callers',
          'The same by tenant and hash of the caller.',
          'none',
          ranked('hopline_tenant_requests_refused_total', ['tenant', 'caller']),
        ),
        graph(
          'Refusals over time',
          'Requests answered with 429, by limit. The settings HOPLINE_OWNER_… are the limits.',
          'reqps',
          {
            '{{reason}}': rate('hopline_requests_refused_total', { by: 'reason' }),
          },
        ),
      ],
    },
    {
      title: 'Whose tasks fill the log?',
      panels: [
        bars(
          'Stored bytes',
          'Bytes of facts that tasks appended in the shown range. Choose the retention of the log as the range to see who fills it.',
          'bytes',
          ranked('hopline_tenant_stored_bytes_total', ['tenant']),
        ),
        bars(
          'Callers that fill the log',
          'The same by tenant and hash of the caller.',
          'bytes',
          ranked('hopline_tenant_stored_bytes_total', ['tenant', 'caller']),
        ),
        graph(
          'Stored bytes over time',
          'Bytes of facts by tenant.',
          'Bps',
          { '{{tenant}}': rate('hopline_tenant_stored_bytes_total', { by: 'tenant' }) },
          { stacked: true },
        ),
      ],
    },
    {
      title: 'Which shard is hot?',
      panels: [
        bars(
          'Hot shards',
          'Input records that relays read, in the shown range. One far above the others has a task or a context that writes much.',
          'none',
          {
            'shard {{shard}}': largest('hopline_shard_records_total', 'shard'),
          },
        ),
        graph('Records by shard', 'The ten busiest shards.', 'ops', {
          'shard {{shard}}': `topk(10, ${rate('hopline_shard_records_total', { by: 'shard' })})`,
        }),
        graph('Records by relay', 'Shards are shared by number, so a relay with hot shards is busier than the others.', 'ops', {
          '{{instance}}': rate('hopline_shard_records_total', { by: 'instance' }),
        }),
      ],
    },
  ],
};

const nats: Dashboard = {
  uid: 'hopline-nats',
  title: 'Hopline / NATS',
  description: 'Room, lag and connections of the log.',
  variables: [],
  rows: [
    {
      title: 'Streams',
      panels: [
        graph(
          'Bytes of their limit',
          'A2A_RAW and A2A_LOG remove the oldest records at 1; A2A_WORK and buckets with a bound refuse.',
          'percentunit',
          {
            '{{stream_name}}': 'max by (stream_name) (jetstream_stream_total_bytes / (jetstream_stream_limit_bytes > 0))',
          },
          { redFrom: 0.85 },
        ),
        graph('Bytes', 'Stored bytes by stream.', 'bytes', {
          '{{stream_name}}': 'max by (stream_name) (jetstream_stream_total_bytes)',
        }),
        graph('Age of the oldest record', 'How far back each stream reaches. prometheus-nats-exporter does not have it.', 's', {
          '{{stream_name}}': 'time() - max by (stream_name) (jetstream_stream_first_timestamp_seconds)',
        }),
        graph(
          'Oldest open task',
          'Age of the oldest record that an open task needs, or a stream whose client is behind. Retention must not reach it; see RUNBOOK, HoplineRetentionNear.',
          's',
          {
            'open task': 'time() - min(hopline_open_tasks_oldest_start_timestamp_seconds{job=~"$job"})',
            stream: 'time() - min(hopline_streams_oldest_needed_timestamp_seconds{job=~"$job"})',
          },
        ),
        graph('Records', 'New records by stream.', 'ops', {
          '{{stream_name}}': 'max by (stream_name) (rate(jetstream_stream_last_seq[$__rate_interval]))',
        }),
        graph('Waiting work', 'Items that no worker has taken, by role.', 'none', {
          '{{consumer_name}}': 'max by (consumer_name) (jetstream_consumer_num_pending{stream_name=~"(.+_)?A2A_WORK"})',
        }),
        graph('Work in progress', 'Items that a worker holds, by role.', 'none', {
          '{{consumer_name}}': 'max by (consumer_name) (jetstream_consumer_num_ack_pending{stream_name=~"(.+_)?A2A_WORK"})',
        }),
        graph('Shortages', 'Writes that a full stream refused, and streams that are nearly full.', 'ops', {
          '{{stream}} {{reason}}': rate('hopline_log_shortages_total', { by: 'stream, reason' }),
        }),
      ],
    },
    {
      title: 'Servers and connections',
      panels: [
        graph('Connections', 'Connections by server.', 'none', {
          '{{server_name}}': 'max by (server_name) (gnatsd_varz_connections)',
        }),
        graph('Health', '1: /healthz of the server fails, because a stream cannot store or has not caught up.', 'none', {
          '{{instance}}': 'max by (instance) (gnatsd_healthz_status)',
        }),
        graph('Slow consumers', 'Connections that NATS cut because they read too slowly.', 'none', {
          '{{server_name}}': 'max by (server_name) (gnatsd_varz_slow_consumers)',
        }),
        graph('CPU of NATS', 'Percent of one core, as the server reports it.', 'short', {
          '{{server_name}}': 'max by (server_name) (gnatsd_varz_cpu)',
        }),
        graph('Memory of NATS', 'Resident memory.', 'bytes', { '{{server_name}}': 'max by (server_name) (gnatsd_varz_mem)' }),
        graph(
          'Events of the connection',
          'Seen by the services: `disconnected`, `republished` and `reread` are repaired without loss.',
          'ops',
          {
            '{{kind}}': rate('hopline_log_events_total', { by: 'kind' }),
          },
        ),
        graph('Lost spans', 'Spans that were not exported.', 'ops', {
          '{{service}} {{reason}}': rate('hopline_spans_lost_total', { by: 'service, reason' }),
        }),
      ],
    },
  ],
};

const task: Dashboard = {
  uid: 'hopline-task',
  title: 'Hopline / One task',
  description: 'Find the traces of a task by its id. The log itself answers too: `hopline trace TASK`.',
  variables: [{ name: 'task', label: 'Task id', text: '' }],
  rows: [
    {
      title: 'Traces',
      panels: [
        {
          kind: 'jaeger',
          title: 'Traces in Jaeger',
          description: 'One trace for each turn, and one for each resume. Click a trace id to see its hops.',
          unit: 'none',
          queries: [],
          width: 12,
          content: 'a2a.task.id=$task',
        },
        {
          kind: 'tempo',
          title: 'Traces in Tempo',
          description: 'The same, if the Grafana has a data source of Tempo.',
          unit: 'none',
          queries: [],
          width: 12,
          content: '{ span.a2a.task.id = "$task" }',
        },
        {
          kind: 'text',
          title: 'Without a backend',
          description: 'Commands that answer from the log.',
          unit: 'none',
          queries: [],
          width: 24,
          content:
            'Where did the time go: `npm run -s hopline -- trace $task`. Why did an event come late: `npm run -s hopline -- why $task CURSOR`.',
        },
      ],
    },
    {
      title: 'The cluster in that time',
      panels: [
        graph(
          'Hops, p95',
          'How long each hop took for all tasks: compare it with this task’s trace.',
          's',
          { '{{hop}}': quantile(0.95, HOPS, { by: 'hop' }) },
          { width: 12 },
        ),
        graph(
          'Lag by shard',
          'A task waits when its shard has lag.',
          'none',
          { 'shard {{shard}}': 'max by (shard) (hopline_shard_lag{job=~"$job"})' },
          { width: 12 },
        ),
      ],
    },
  ],
};

export const DASHBOARDS: readonly Dashboard[] = [overview, task, tenants, relay, agents, ingress, nats];
