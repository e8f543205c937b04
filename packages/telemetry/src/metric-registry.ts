import { HOP_NAMES, PATH_HOP_NAMES } from './hops.ts';

/**
 * All metrics of Hopline as data. docs/reference/metrics.md is generated from it. Every counter is exported as 0 from the start of its
 * process, because an alert on `increase()` misses a series whose first value is 1.
 */

/** The labels, each with a single meaning. The view drops every other key, so that no id becomes a label. */
export const LABELS = {
  service: 'name of the service, such as `relay`',
  agent: 'name of a configured agent, or `supervisor`',
  hop: 'name of a hop, as in hops.md',
  binding: 'transport of a request',
  operation: 'A2A operation of a request',
  outcome: 'how something ended',
  reason: 'why something happened',
  state: 'state of a task',
  kind: 'which of several kinds of things is counted',
  stream: 'stream or bucket of the log',
  shard: 'number of a shard',
  mode: 'kind of CPU time',
  version: 'version of Hopline',
  check: 'name of a check of `/readyz`',
  'gen_ai.operation.name': 'operation of a model',
  'gen_ai.provider.name': 'API of a model',
  'gen_ai.request.model': 'name of a configured model',
  'gen_ai.token.type': 'kind of tokens of a model',
  'error.type': 'why it failed',
  model: 'name of a configured model',
  tenant: 'tenant of the owner; `none` without one, `other` beyond the 20 busiest of the process',
  caller: 'hash of the caller; `none` without authentication, `other` beyond the 20 busiest of the process',
} as const;
export type LabelName = keyof typeof LABELS;

/** A closed list of values, or where the values come from. */
type Values = readonly string[] | 'configured' | 'number' | 'busiest';

const ALL = ['ingress', 'relay', 'supervisor', 'sub-agent', 'notifier'] as const;
const SERVERS = ['ingress', 'sub-agent'] as const;
const WORKERS = ['supervisor', 'sub-agent'] as const;
type ServiceName = (typeof ALL)[number];

/** `appends`: the log stores what the process writes. `api_keys`, `jwks`: the file that is in use is the current one. */
const CHECKS = ['log', 'appends', 'agent', 'ingress', 'api_keys', 'jwks'] as const;
export type CheckName = (typeof CHECKS)[number];
const ENDED = ['completed', 'failed', 'canceled', 'rejected'] as const;
const BINDINGS = ['jsonrpc', 'http', 'grpc', 'ai-sdk', 'openai', 'ag-ui', 'durable-streams'] as const;
export type Binding = (typeof BINDINGS)[number];
const OPERATIONS = [
  'send',
  'stream',
  'get',
  'list',
  'cancel',
  'subscribe',
  'createPush',
  'getPush',
  'listPush',
  'deletePush',
  'extendedCard',
  'unknown',
] as const;
const INPUT_KINDS = [
  'message',
  'cancel',
  'timeout',
  'auth-timeout',
  'copy-forward',
  'work-gone',
  'open',
  'text',
  'close',
  'artifact',
  'status',
  'queued',
  'call',
  'ended',
  'step',
  'remote-run',
  'agent-step',
  'malformed',
  'unknown',
] as const;

/** Limits of a caller or its tenant that refuse requests. */
const REFUSALS = [
  'messages',
  'bytes',
  'streams',
  'requests',
  'tasks',
  'webhooks',
  'stored',
  'sent',
  'items',
  'exports',
  'audits',
] as const;
/** Required attributes of the GenAI conventions 1.41.1, and the agent. */
const CHAT = {
  agent: 'configured',
  'gen_ai.operation.name': ['chat'],
  'gen_ai.provider.name': ['openai'],
  'gen_ai.request.model': 'configured',
} as const;
const PARTY = { tenant: 'busiest', caller: 'busiest' } as const;

/** Why a request to a webhook failed. */
const DELIVERY_FAILURES = [
  'http_3xx',
  'http_4xx',
  'http_5xx',
  'timeout',
  'unreachable',
  'certificate',
  'forbidden_address',
  'forbidden_url',
  'unsendable',
  'sealed',
  'unknown_dialect',
] as const;

type Definition = {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit: string;
  readonly meaning: string;
  readonly services: readonly ServiceName[];
  /** Its values are computed when metrics are read. */
  readonly observed?: true;
  readonly labels?: { readonly [name in LabelName]?: Values };
};

export const METRICS = {
  requests: {
    name: 'hopline.requests',
    type: 'counter',
    unit: '{request}',
    meaning: 'Requests of A2A clients. An unknown method is the operation `unknown`',
    services: SERVERS,
    labels: { binding: BINDINGS, operation: OPERATIONS, outcome: ['ok', 'client_error', 'server_error', 'client_gone'] },
  },
  requestErrors: {
    name: 'hopline.request_errors',
    type: 'counter',
    unit: '{request}',
    meaning: 'Requests answered with an error, by code; includes requests outside A2A (audit, export)',
    services: SERVERS,
    labels: {
      reason: [
        'PARSE_ERROR',
        'INVALID_REQUEST',
        'METHOD_NOT_FOUND',
        'INVALID_PARAMS',
        'INTERNAL_ERROR',
        'TASK_NOT_FOUND',
        'TASK_NOT_CANCELABLE',
        'PUSH_NOTIFICATION_NOT_SUPPORTED',
        'UNSUPPORTED_OPERATION',
        'CONTENT_TYPE_NOT_SUPPORTED',
        'INVALID_AGENT_RESPONSE',
        'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
        'EXTENSION_SUPPORT_REQUIRED',
        'VERSION_NOT_SUPPORTED',
        'TASK_GENERATION_MISMATCH',
        'UNAUTHENTICATED',
        'PERMISSION_DENIED',
        'REQUEST_TOO_LARGE',
        'QUOTA_EXCEEDED',
        'UNAVAILABLE',
      ],
    },
  },
  requestsRefused: {
    name: 'hopline.requests_refused',
    type: 'counter',
    unit: '{request}',
    meaning: 'Requests refused by a limit of their caller or its tenant, by the limit',
    services: SERVERS,
    labels: { reason: REFUSALS },
  },
  tenantRequests: {
    name: 'hopline.tenant.requests',
    type: 'counter',
    unit: '{request}',
    meaning: 'Requests of authenticated callers, by tenant and caller',
    services: SERVERS,
    labels: PARTY,
  },
  tenantRefused: {
    name: 'hopline.tenant.requests_refused',
    type: 'counter',
    unit: '{request}',
    meaning: 'Requests answered with 429, by tenant, caller and limit',
    services: SERVERS,
    labels: { ...PARTY, reason: REFUSALS },
  },
  tenantTurns: {
    name: 'hopline.tenant.turns',
    type: 'counter',
    unit: '{turn}',
    meaning: 'Turns that messages began, by the tenant and the caller of the task',
    services: ['relay'],
    labels: PARTY,
  },
  tenantStored: {
    name: 'hopline.tenant.stored',
    type: 'counter',
    unit: 'By',
    meaning: 'Bytes of records of facts appended to the log, by the tenant and the caller of the task',
    services: ['relay'],
    labels: PARTY,
  },
  tenantTurnTime: {
    name: 'hopline.tenant.turn_time',
    type: 'counter',
    unit: 's',
    meaning: 'Time for which turns took a slot of an agent, by the tenant of the task',
    services: ['sub-agent'],
    labels: { tenant: 'busiest', agent: 'configured' },
  },
  requestDuration: {
    name: 'hopline.request.duration',
    type: 'histogram',
    unit: 's',
    meaning: 'Time from receiving a request to its response, or to its acceptance if it is a stream',
    services: SERVERS,
    labels: { binding: BINDINGS, operation: OPERATIONS },
  },
  received: {
    name: 'hopline.received',
    type: 'counter',
    unit: 'By',
    meaning: 'Bytes read: requests at a server, input records at a relay',
    services: [...SERVERS, 'relay'],
  },
  sent: {
    name: 'hopline.sent',
    type: 'counter',
    unit: 'By',
    meaning: 'Bytes written: responses and events at a server, notifications at a notifier',
    services: [...SERVERS, 'notifier'],
  },
  openStreams: {
    name: 'hopline.open_streams',
    type: 'gauge',
    unit: '{stream}',
    meaning: 'Open streams and waiting sends of a server',
    services: SERVERS,
  },
  resumes: {
    name: 'hopline.resumes',
    type: 'counter',
    unit: '{stream}',
    meaning: 'Streams that clients resumed with a cursor',
    services: SERVERS,
  },
  gaps: {
    name: 'hopline.gaps',
    type: 'counter',
    unit: '{gap}',
    meaning: 'Gaps sent to resumed clients: retention had removed the events',
    services: SERVERS,
  },
  viewersCut: {
    name: 'hopline.viewers_cut',
    type: 'counter',
    unit: '{stream}',
    meaning: 'Streams that the server ended before the task did',
    services: SERVERS,
    labels: { reason: ['slow_viewer', 'drain', 'log_fault'] },
  },
  timeToFirstToken: {
    name: 'hopline.time_to_first_token',
    type: 'histogram',
    unit: 's',
    meaning:
      "Time from receiving a request to the first text of an agent on the client's socket, once per turn. The supervisor's plan is not an agent's text",
    services: SERVERS,
    labels: { agent: 'configured' },
  },
  chunkDuration: {
    name: 'hopline.chunk.duration',
    type: 'histogram',
    unit: 's',
    meaning: "Time from the creation of a chunk's oldest token to the first socket: the sum of the hops `publish` to `socket`",
    services: SERVERS,
    labels: { agent: 'configured' },
  },
  hopDuration: {
    name: 'hopline.hop.duration',
    type: 'histogram',
    unit: 's',
    meaning: 'Time in one hop',
    services: ALL,
    labels: { hop: HOP_NAMES, agent: 'configured' },
  },
  pathTime: {
    name: 'hopline.path.time',
    type: 'counter',
    unit: 's',
    meaning:
      'Time of a hop on the critical paths of measured turns: the cost of the hop. The sum over all hops is the time of these turns',
    services: ['relay'],
    labels: { hop: PATH_HOP_NAMES, agent: 'configured' },
  },
  pathTurns: {
    name: 'hopline.path.turns',
    type: 'counter',
    unit: '{turn}',
    meaning:
      'Turns that ended, by what became of their critical path: `measured`; `skipped`, because the relay was measuring another one; `too_long`; `incomplete`, because the log no longer has its beginning; `failed`, because the log could not be read',
    services: ['relay'],
    labels: { outcome: ['measured', 'skipped', 'too_long', 'incomplete', 'failed'] },
  },
  tokens: {
    name: 'hopline.tokens',
    type: 'counter',
    unit: '{token}',
    meaning: 'Tokens in stored chunks',
    services: ['relay'],
    labels: { agent: 'configured' },
  },
  chunks: {
    name: 'hopline.chunks',
    type: 'counter',
    unit: '{chunk}',
    meaning:
      'Stored chunks of text, by the reason for which the coalescer released them; `producer`: the sender had held the text; `other`: a reason of another version',
    services: ['relay'],
    labels: {
      agent: 'configured',
      reason: ['each', 'first', 'producer', 'ready', 'quiet', 'delay', 'age', 'size', 'boundary', 'close', 'other'],
    },
  },
  events: {
    name: 'hopline.events',
    type: 'counter',
    unit: '{event}',
    meaning: 'Stored facts that clients see',
    services: ['relay'],
    labels: { kind: ['task', 'status', 'artifact'] },
  },
  inputs: {
    name: 'hopline.inputs',
    type: 'counter',
    unit: '{input}',
    meaning: 'Inputs of a relay; each token counts. `received` minus all others is what the relay holds now',
    services: ['relay'],
    labels: { kind: INPUT_KINDS, outcome: ['received', 'accepted', 'rejected', 'duplicate', 'abandoned'] },
  },
  inputsRejected: {
    name: 'hopline.inputs_rejected',
    type: 'counter',
    unit: '{input}',
    meaning: 'Inputs that produced no fact',
    services: ['relay'],
    labels: {
      reason: [
        'unknown_task',
        'terminal',
        'duplicate_message',
        'too_many_turns',
        'unknown_lane',
        'closed_lane',
        'other_producer',
        'other_agent',
        'stale_turn',
        'stale_attempt',
        'other_generation',
        'question_answered',
        'other_item',
        'not_root',
        'unknown_call',
        'ended_call',
        'duplicate_call',
        'other_call_waits',
        'no_change',
        'illegal_transition',
        'not_waiting',
        'too_large',
        'unknown_kind',
        'unreadable',
      ],
    },
  },
  agentEventsSkipped: {
    name: 'hopline.agent_events_skipped',
    type: 'counter',
    unit: '{event}',
    meaning: 'Events of an agent that its adapter skipped',
    services: ['sub-agent'],
    labels: {
      agent: 'configured',
      reason: ['custom_payload', 'empty_marker', 'hidden_text', 'malformed_frame', 'repeated_message', 'unknown_event'],
    },
  },
  recordsRejected: {
    name: 'hopline.records_rejected',
    type: 'counter',
    unit: '{record}',
    meaning: 'Stored input records that a relay could not read or apply',
    services: ['relay'],
    labels: { reason: ['not_a_record', 'malformed_input', 'unknown_version', 'too_deep', 'wrong_writer', 'not_applicable'] },
  },
  appendDuration: {
    name: 'hopline.append.duration',
    type: 'histogram',
    unit: 's',
    meaning: 'Time from the start of an append of facts to its acknowledgment',
    services: ['relay'],
  },
  appendConflicts: {
    name: 'hopline.append_conflicts',
    type: 'counter',
    unit: '{append}',
    meaning: 'Writes that the log refused because another owner of the shard had written first',
    services: ['relay', 'notifier'],
  },
  tasksCreated: {
    name: 'hopline.tasks_created',
    type: 'counter',
    unit: '{task}',
    meaning: 'Tasks created',
    services: ['relay'],
  },
  tasksEnded: {
    name: 'hopline.tasks_ended',
    type: 'counter',
    unit: '{task}',
    meaning: 'Tasks that reached a terminal state',
    services: ['relay'],
    labels: { state: ENDED },
  },
  openTasks: {
    name: 'hopline.open_tasks',
    type: 'gauge',
    unit: '{task}',
    meaning: 'Open tasks of the shards that the relay owns',
    observed: true,
    services: ['relay'],
    labels: { state: ['submitted', 'working', 'input-required', 'auth-required'] },
  },
  ownedShards: {
    name: 'hopline.owned_shards',
    type: 'gauge',
    unit: '{shard}',
    meaning: 'Shards that the process owns',
    services: ['relay', 'notifier'],
  },
  takeovers: {
    name: 'hopline.takeovers',
    type: 'counter',
    unit: '{shard}',
    meaning:
      'Shards started by this process: `fresh` had no owner yet, `released` was released in order, `lost` had an owner that died',
    services: ['relay', 'notifier'],
    labels: { reason: ['fresh', 'released', 'lost'] },
  },
  shardRestarts: {
    name: 'hopline.shard_restarts',
    type: 'counter',
    unit: '{shard}',
    meaning: 'Shards that failed in this process and started again',
    services: ['relay'],
    labels: { reason: ['conflict', 'log_fault'], shard: 'number' },
  },
  shardLag: {
    name: 'hopline.shard.lag',
    type: 'gauge',
    unit: '{record}',
    meaning:
      'Input records of a shard that are stored and not folded yet. Shards that share a consumer have equal shares of what it has not delivered',
    observed: true,
    services: ['relay'],
    labels: { shard: 'number' },
  },
  shardRecords: {
    name: 'hopline.shard.records',
    type: 'counter',
    unit: '{record}',
    meaning: 'Input records of a shard that its relay has read since it took the shard',
    observed: true,
    services: ['relay'],
    labels: { shard: 'number' },
  },
  shardOldestInput: {
    name: 'hopline.shard.oldest_input',
    type: 'gauge',
    unit: 's',
    meaning: 'Age of the oldest input of a shard that is stored and not folded yet; 0 without such an input',
    observed: true,
    services: ['relay'],
    labels: { shard: 'number' },
  },
  openTasksOldestStart: {
    name: 'hopline.open_tasks.oldest_start_timestamp',
    type: 'gauge',
    unit: 's',
    meaning: 'When the oldest record that an open task needs was stored, seconds since 1970; absent without open tasks',
    observed: true,
    services: ['relay'],
  },
  streamsOldestNeeded: {
    name: 'hopline.streams.oldest_needed_timestamp',
    type: 'gauge',
    unit: 's',
    meaning:
      'When the oldest record that an open stream still has to read was stored, seconds since 1970; absent while every stream has sent what the log has',
    observed: true,
    services: ['ingress'],
  },
  activeTasks: {
    name: 'hopline.active_tasks',
    type: 'gauge',
    unit: '{task}',
    meaning: 'Turns that run now; at a notifier, webhooks that are being delivered',
    services: [...WORKERS, 'notifier'],
    labels: { agent: 'configured' },
  },
  queueWaiting: {
    name: 'hopline.queue.waiting',
    type: 'gauge',
    unit: '{turn}',
    meaning:
      'Turns that have waited for a free slot for more than a second, by the role that they wait for: at a relay those of supervisors and of agents that are addressed directly, at a supervisor its calls',
    services: ['relay', 'supervisor'],
    labels: { agent: 'configured' },
  },
  turnsEnded: {
    name: 'hopline.turns_ended',
    type: 'counter',
    unit: '{turn}',
    meaning: 'Turns of an agent, by how they ended; `unneeded`: the task had ended or proceeded before the agent',
    services: ['sub-agent'],
    labels: { agent: 'configured', outcome: [...ENDED, 'input-required', 'auth-required', 'unneeded'] },
  },
  turnSilence: {
    name: 'hopline.turn.silence',
    type: 'gauge',
    unit: 's',
    meaning:
      'Time since the last event of a running turn, of the one that has been silent longest; 0 without a turn. Turns that wait for their client do not count',
    observed: true,
    services: ['sub-agent'],
    labels: { agent: 'configured' },
  },
  turnDuration: {
    name: 'hopline.turn.duration',
    type: 'histogram',
    unit: 's',
    meaning: 'Time from taking a work item to the end of its turn',
    services: WORKERS,
    labels: { agent: 'configured' },
  },
  redeliveries: {
    name: 'hopline.redeliveries',
    type: 'counter',
    unit: '{message}',
    meaning: 'Work items delivered again',
    services: WORKERS,
    labels: { agent: 'configured', reason: ['redelivery', 'requeue'] },
  },
  requeues: {
    name: 'hopline.requeues',
    type: 'counter',
    unit: '{message}',
    meaning: 'Work items that this process returned unfinished',
    services: WORKERS,
    labels: { agent: 'configured', reason: ['shutdown', 'retry', 'superseded', 'fault'] },
  },
  deadLetters: {
    name: 'hopline.dead_letters',
    type: 'counter',
    unit: '{message}',
    meaning: 'Work items that never succeeded: `attempts_exhausted` fails its task, `undeliverable` stays in the queue',
    services: WORKERS,
    labels: { agent: 'configured', reason: ['attempts_exhausted', 'undeliverable'] },
  },
  webhookDeliveries: {
    name: 'hopline.webhook_deliveries',
    type: 'counter',
    unit: '{notification}',
    meaning: 'Requests to webhooks, by outcome',
    services: ['notifier'],
    labels: {
      outcome: ['delivered', ...DELIVERY_FAILURES],
    },
  },
  webhookRetries: {
    name: 'hopline.webhook_retries',
    type: 'counter',
    unit: '{notification}',
    meaning: 'Requests to webhooks that repeat a failed one',
    services: ['notifier'],
  },
  webhooksAbandoned: {
    name: 'hopline.webhooks_abandoned',
    type: 'counter',
    unit: '{webhook}',
    meaning: 'Webhooks that receive no further notifications, by the last failure',
    services: ['notifier'],
    labels: {
      reason: [...DELIVERY_FAILURES, 'other_owner'],
    },
  },
  webhookFailing: {
    name: 'hopline.webhook.failing',
    type: 'gauge',
    unit: 's',
    meaning: 'How long the longest-failing webhook has been failing; 0 while none fails',
    observed: true,
    services: ['notifier'],
  },
  webhookOldestEvent: {
    name: 'hopline.webhook.oldest_event',
    type: 'gauge',
    unit: 's',
    meaning:
      'Age of the oldest event for which a webhook waits, even while all workers are taken, without webhooks that fail; 0 without one',
    observed: true,
    services: ['notifier'],
  },
  logConnected: {
    name: 'hopline.log.connected',
    type: 'gauge',
    unit: '{connection}',
    meaning: '1 while the process is connected to NATS, else 0',
    observed: true,
    services: ALL,
  },
  logFirstTimestamp: {
    name: 'hopline.log.first_timestamp',
    type: 'gauge',
    unit: 's',
    meaning: 'When the oldest event of a stream of events was stored, seconds since 1970. Relays look once a minute',
    observed: true,
    services: ['relay'],
    labels: { stream: 'configured' },
  },
  logAgeLimit: {
    name: 'hopline.log.age_limit',
    type: 'gauge',
    unit: 's',
    meaning: 'Age at which a stream of events removes its records; absent without a limit',
    observed: true,
    services: ['relay'],
    labels: { stream: 'configured' },
  },
  checkFailing: {
    name: 'hopline.check.failing',
    type: 'gauge',
    unit: '{check}',
    meaning: '1 while a check of /readyz fails, else 0, even for a check that leaves the process ready (`degraded`)',
    observed: true,
    services: ALL,
    labels: { check: CHECKS },
  },
  certificateExpiry: {
    name: 'hopline.certificate.expiry_timestamp',
    type: 'gauge',
    unit: 's',
    meaning: 'When a certificate of the process expires, seconds since 1970',
    observed: true,
    services: ALL,
    labels: { kind: ['server', 'nats'] },
  },
  logShortages: {
    name: 'hopline.log_shortages',
    type: 'counter',
    unit: '{event}',
    meaning: 'Writes that a full stream refused, and checks that found one nearly full or removing by bytes',
    services: ALL,
    labels: { stream: 'configured', reason: ['full', 'nearly_full', 'removes_by_bytes', 'inputs_rebuilt', 'inputs_behind'] },
  },
  logEvents: {
    name: 'hopline.log_events',
    type: 'counter',
    unit: '{event}',
    meaning:
      'Events of the connection to the log and of its readers. `facts_lost`: a relay folds the inputs of a shard again; `streams_lost`: a relay has created missing streams again; `check_failed`: a repeated check failed because of a defect',
    services: ALL,
    labels: {
      kind: [
        'disconnected',
        'reconnected',
        'lame_duck',
        'server_error',
        'rejected',
        'undecodable',
        'republished',
        'reread',
        'reader_restarted',
        'dead_letter',
        'worker_dead',
        'denied',
        'login_wide',
        'layout_added',
        'layout_refused',
        'bounds_refused',
        'leader_moved',
        'facts_lost',
        'streams_lost',
        'creation_refused',
        'check_failed',
      ],
    },
  },
  unknownRemoved: {
    name: 'hopline.unknown_removed',
    type: 'counter',
    unit: '{item}',
    meaning: 'Consumers and items of work that a relay removed from a stream because they do not belong to Hopline',
    services: ['relay'],
    labels: { stream: 'configured', kind: ['unknown_consumers', 'unknown_work'] },
  },
  spansLost: {
    name: 'hopline.spans_lost',
    type: 'counter',
    unit: '{span}',
    meaning: 'Spans that were not exported: `queue_full` if they ended faster than the collector accepted them',
    services: ALL,
    labels: { reason: ['queue_full', 'export_failed'] },
  },
  modelTokens: {
    name: 'gen_ai.client.token.usage',
    type: 'histogram',
    unit: '{token}',
    meaning: 'Tokens of one model step, as the provider reports them. Input includes cached tokens, output those of reasoning',
    services: WORKERS,
    labels: { ...CHAT, 'gen_ai.token.type': ['input', 'output'] },
  },
  modelDuration: {
    name: 'gen_ai.client.operation.duration',
    type: 'histogram',
    unit: 's',
    meaning: 'Duration of one model step. `error_type` is absent if it was complete',
    services: WORKERS,
    labels: { ...CHAT, 'error.type': 'configured' },
  },
  tenantModelTokens: {
    name: 'hopline.tenant.model_tokens',
    type: 'counter',
    unit: '{token}',
    meaning: 'Tokens of models by agent and tenant. `cached` is a part of `input`, `reasoning` a part of `output`',
    services: WORKERS,
    labels: { agent: 'configured', tenant: 'busiest', model: 'configured', kind: ['input', 'cached', 'output', 'reasoning'] },
  },
  tenantModelCost: {
    name: 'hopline.tenant.model_cost',
    type: 'counter',
    unit: '{cost}',
    meaning: 'Cost of models in the currency of HOPLINE_MODEL_PRICES_FILE; absent for models that the file does not name',
    services: WORKERS,
    labels: { agent: 'configured', tenant: 'busiest', model: 'configured' },
  },
} as const satisfies { readonly [key: string]: Definition };

/** Metrics of the process, observed when metrics are read. Every service has them. */
export const PROCESS_METRICS = {
  cpuTime: { name: 'process.cpu.time', type: 'counter', unit: 's', meaning: 'CPU time', labels: { mode: ['user', 'system'] } },
  startTime: { name: 'process.start_time', type: 'gauge', unit: 's', meaning: 'When the process started, seconds since 1970' },
  build: {
    name: 'hopline.build_info',
    type: 'gauge',
    unit: '{build}',
    meaning: 'Always 1. The label has the version that the process runs',
    labels: { version: 'number' },
  },
  memory: { name: 'process.memory.usage', type: 'gauge', unit: 'By', meaning: 'Resident memory' },
  heap: { name: 'v8js.memory.heap.used', type: 'gauge', unit: 'By', meaning: 'Heap in use' },
  loopUtilization: {
    name: 'nodejs.eventloop.utilization',
    type: 'gauge',
    unit: '1',
    meaning: 'Busy share of the event loop in the last 30 to 60 s, or since a read that is longer ago',
  },
  loopDelayP50: {
    name: 'nodejs.eventloop.delay.p50',
    type: 'gauge',
    unit: 's',
    meaning: 'Median event-loop delay in the last 30 to 60 s, or since a read that is longer ago',
  },
  loopDelayP99: {
    name: 'nodejs.eventloop.delay.p99',
    type: 'gauge',
    unit: 's',
    meaning: 'p99 of the event-loop delay in the last 30 to 60 s, or since a read that is longer ago',
  },
  loopDelayMax: {
    name: 'nodejs.eventloop.delay.max',
    type: 'gauge',
    unit: 's',
    meaning: 'Longest event-loop delay in the last 30 to 60 s, or since a read that is longer ago',
  },
} as const;

/** Suffix that the unit of an instrument adds to its Prometheus name. A unit in braces adds none. */
const UNIT_SUFFIXES: Readonly<Record<string, string>> = { s: 'seconds', By: 'bytes', '1': 'ratio' };

/** The unit as a word of Prometheus names; undefined when the name has none. */
export function unitSuffix(unit: string): string | undefined {
  return UNIT_SUFFIXES[unit];
}
