/**
 * Every name that leaves a process in a span or a log line; metric-registry.ts has those of metrics. Any other name is a type error.
 * Sources: OTel messaging conventions 1.45 (`messaging.system.name`), the GenAI conventions 1.41.1 (copied: the npm constants are
 * deprecated as "moved" to a repository without a release), the draft A2A conventions (open-telemetry/semantic-conventions-genai#195); `hopline.*` is ours.
 */

/** Prefix of `service.name`, as in `hopline-relay`, and the `service.namespace` of a cluster without a prefix. */
export const SERVICE_PREFIX = 'hopline';
/** Instrumentation scope of Hopline's tracer and meter. */
export const SCOPE = 'hopline';

/** Subjects as templates: a span name must not contain a task id. */
export const DESTINATION = {
  raw: 'a2a.raw.{shard}.{taskId}.{writer}',
  log: 'a2a.log.{shard}.{taskId}',
  live: 'a2a.live.{shard}.{taskId}',
  work: 'a2a.work.{role}.{taskId}',
} as const;

/** Span names of the hops over the log: `{operation} {destination template}`. */
export const SPAN = {
  receiveInput: `receive ${DESTINATION.raw}`,
  processInput: `process ${DESTINATION.raw}`,
  receiveWork: `receive ${DESTINATION.work}`,
  processWork: `process ${DESTINATION.work}`,
  /** A stream or a waiting send after its request was accepted. */
  deliverEvents: 'deliver_events',
  sendPushNotification: 'send_push_notification',
} as const;

/** Method names of the draft A2A conventions; also the name of the SERVER (ingress) or CLIENT (remote agent) span. */
export const A2A_METHOD = {
  sendMessage: 'send_message',
  sendStreamingMessage: 'send_streaming_message',
  getTask: 'get_task',
  listTasks: 'list_tasks',
  cancelTask: 'cancel_task',
  subscribeToTask: 'subscribe_to_task',
  createPushConfig: 'create_task_push_notification_config',
  getPushConfig: 'get_task_push_notification_config',
  listPushConfigs: 'list_task_push_notification_configs',
  deletePushConfig: 'delete_task_push_notification_config',
  getExtendedCard: 'get_extended_agent_card',
  /** A request that names no known method or cannot be read. */
  unknown: 'unknown_method',
} as const;
export type A2aMethod = (typeof A2A_METHOD)[keyof typeof A2A_METHOD];

/** Requests outside A2A. They have a span only if they fail. */
export type HoplineMethod = 'list_agents' | 'audit_task' | 'explain_event' | 'export_task' | 'list_deliveries';

/** `agent` is a configured agent's name: low cardinality. */
export const invokeAgentSpan = (agent: string) => `invoke_agent ${agent}` as const;
/** `tool` is the name of a tool of a configured server, so its cardinality is low. */
export const executeToolSpan = (tool: string) => `execute_tool ${tool}` as const;
/** `model` is a configured model's name: low cardinality. */
export const chatSpan = (model: string) => `chat ${model}` as const;

export type SpanName =
  | (typeof SPAN)[keyof typeof SPAN]
  | A2aMethod
  | HoplineMethod
  | ReturnType<typeof invokeAgentSpan>
  | ReturnType<typeof executeToolSpan>
  | ReturnType<typeof chatSpan>;

/** Span attributes. Values are ids, names, numbers and words of closed lists; never message text, model tokens or credentials. */
export const ATTR = {
  errorType: 'error.type',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  httpStatus: 'http.response.status_code',

  messagingSystem: 'messaging.system.name',
  operationName: 'messaging.operation.name',
  operationType: 'messaging.operation.type',
  destinationName: 'messaging.destination.name',
  destinationTemplate: 'messaging.destination.template',
  partition: 'messaging.destination.partition.id',
  consumerGroup: 'messaging.consumer.group.name',
  messageId: 'messaging.message.id',
  conversation: 'messaging.message.conversation_id',
  bodyBytes: 'messaging.message.body.size',
  batchCount: 'messaging.batch.message_count',

  genAiOperation: 'gen_ai.operation.name',
  genAiAgentName: 'gen_ai.agent.name',
  genAiAgentId: 'gen_ai.agent.id',
  genAiConversation: 'gen_ai.conversation.id',
  genAiTool: 'gen_ai.tool.name',
  genAiToolCall: 'gen_ai.tool.call.id',
  genAiProvider: 'gen_ai.provider.name',
  genAiRequestModel: 'gen_ai.request.model',
  genAiInputTokens: 'gen_ai.usage.input_tokens',
  genAiCachedTokens: 'gen_ai.usage.cache_read.input_tokens',
  genAiOutputTokens: 'gen_ai.usage.output_tokens',
  genAiReasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  genAiResponseModel: 'gen_ai.response.model',
  genAiResponseId: 'gen_ai.response.id',
  genAiFinishReasons: 'gen_ai.response.finish_reasons',

  genAiToolType: 'gen_ai.tool.type',

  a2aMethod: 'a2a.method.name',
  a2aTask: 'a2a.task.id',
  a2aState: 'a2a.task.state',
  a2aMessage: 'a2a.message.id',
  a2aVersion: 'a2a.protocol.version',

  segment: 'hopline.segment',
  segmentReason: 'hopline.segment.reason',
  profile: 'hopline.profile',
  role: 'hopline.role',
  producer: 'hopline.producer',
  call: 'hopline.call.id',
  parentTask: 'hopline.parent_task.id',
  graphNode: 'hopline.graph.node',
  attempt: 'hopline.attempt',
  /** Why work began again: `redelivery`, `requeue`, `takeover`, `reload`, `continuation`. */
  cause: 'hopline.cause',
  turn: 'hopline.turn',
  shard: 'hopline.shard',
  binding: 'hopline.binding',
  cursor: 'hopline.cursor',
  generation: 'hopline.generation',
  /** How the hop ended: a state, an error code, `client_gone`, `slow_viewer`, `drain`, `requeued`, `superseded`, `stopped`. */
  outcome: 'hopline.outcome',
  correlation: 'hopline.correlation.id',
  /** Cost of a request to a model, in the currency of the user's price file. */
  cost: 'hopline.model.cost',
  tenant: 'hopline.tenant',
  /** Hash of the caller: `callerHash`. */
  caller: 'hopline.caller',
} as const;
export type AttributeKey = (typeof ATTR)[keyof typeof ATTR];

/** Span event of a hop's step. */
export const EVENT_STEP = 'hopline.step';

/** Counters that a hop sets on its span when a segment ends, instead of one span per token. */
const COUNT_ATTRIBUTES = {
  tokens: 'hopline.tokens',
  chunks: 'hopline.chunks',
  events: 'hopline.events',
  bytesIn: 'hopline.bytes_in',
  bytesOut: 'hopline.bytes_out',
  characters: 'hopline.characters',
  rejected: 'hopline.rejected',
  delivered: 'hopline.delivered',
  failed: 'hopline.failed',
  gaps: 'hopline.gaps',
  toolCalls: 'hopline.tool_calls',
  /** Milliseconds to the first text of an agent (not the supervisor's plan), set through `max`. */
  firstTokenMs: 'hopline.first_token_ms',
  gapMsMax: 'hopline.gap_ms_max',
  heldMsMax: 'hopline.held_ms_max',
  waitMsMax: 'hopline.wait_ms_max',
} as const;
declare const isCountKey: unique symbol;
/** A key of COUNT. The type keeps amounts from being passed as keys. */
export type CountKey = number & { readonly [isCountKey]: true };
/** Keys of the counters: small integers, because a counter is raised for each token. */
export const COUNT = Object.fromEntries(Object.keys(COUNT_ATTRIBUTES).map((name, key) => [name, key])) as unknown as {
  readonly [K in keyof typeof COUNT_ATTRIBUTES]: CountKey;
};
/** The attribute of each counter, by its key. */
export const COUNT_NAMES: readonly string[] = Object.values(COUNT_ATTRIBUTES);

/** Keys of log lines. `err` takes an error, every other key a scalar. */
const LOG_KEYS = [
  'task_id',
  'context_id',
  'message_id',
  'call_id',
  'parent_task_id',
  'correlation_id',
  'tenant',
  'caller',
  'agent',
  'adapter',
  'role',
  'producer',
  'profile',
  'lane',
  'state',
  'outcome',
  'reason',
  'code',
  'attempt',
  'attempts_max',
  'turn',
  'shard',
  'shards',
  'shard_list',
  'owner',
  'seq',
  'raw_seq',
  'cursor',
  'generation',
  'subject',
  'stream',
  'consumer',
  'bucket',
  'pending',
  'count',
  'tokens',
  'chunks',
  'bytes',
  'bytes_max',
  'limit',
  'duration_ms',
  'delay_ms',
  'lag_ms',
  'age_ms',
  'held_ms',
  'timeout_ms',
  'method',
  'dialect',
  'status',
  'url',
  'host',
  'port',
  'path',
  'pid',
  'signal',
  'check',
  'tool',
  'server',
  'account',
  'version',
  'suppressed',
  'cause',
  'spans_lost',
] as const;
export type LogKey = (typeof LOG_KEYS)[number];
