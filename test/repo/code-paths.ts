/** A file on a path: it takes the text, or the record made of it, and passes it on. Files that only check or measure it are not listed. */
export type PathStep = {
  file: string;
  /** The file's role, as the end of a sentence. */
  does: string;
  /** Files that connect this one with the previous step if it has no import: an interface of both, or a file that calls both. */
  via?: readonly string[];
  /** The subject over which the previous step passed the record on. */
  over?: 'a2a.raw' | 'a2a.live' | 'a2a.work';
};

export type CodePath = {
  /** Name of the marked section of ARCHITECTURE.md. */
  name: string;
  title: string;
  /** Files, each counted once. */
  filesMax: number;
  steps: readonly PathStep[];
};

const inPackage = (name: string) => (file: string) => `packages/${name}/src/${file}`;
const a2a = inPackage('a2a');
const agent = inPackage('agent');
const coalesce = inPackage('coalesce');
const fold = inPackage('fold');
const http = inPackage('a2a-http');
const jetstream = inPackage('log-jetstream');
const log = inPackage('log');
const server = inPackage('a2a-server');
const task = inPackage('task');
const relay = (file: string) => `services/relay/src/${file}`;
const supervisor = (file: string) => `services/supervisor/src/${file}`;

/** From a2a.raw to the pipeline of a task, which is the same for every input. */
const INPUT_TO_PIPELINE: readonly PathStep[] = [
  { file: jetstream('pull-inbox.ts'), does: 'receives the stored message', over: 'a2a.raw' },
  { file: jetstream('ordered-reader.ts'), does: 'keeps the order of the shard' },
  { file: jetstream('delivery.ts'), does: 'reads its sequence and time' },
  { file: jetstream('inputs.ts'), does: 'decodes the record' },
  { file: relay('shard.ts'), does: 'passes it to the pipeline of its task', via: [log('input-log.ts')] },
  { file: relay('task-pipeline.ts'), does: 'accepts it in the order of the log' },
  { file: fold('task-inputs.ts'), does: 'skips what is folded already' },
];

/** From a fact of one task to the socket of one client. */
const FACT_TO_FRAME: readonly PathStep[] = [
  { file: jetstream('facts.ts'), does: 'decodes the republished record', over: 'a2a.live' },
  { file: log('follow.ts'), does: 'splices stored and live records' },
  { file: log('read-task.ts'), does: 'merges facts that were copied forward', via: [log('fact-log.ts')] },
  { file: server('feed/task-feed.ts'), does: 'follows the task once for all viewers' },
  { file: task('project.ts'), does: 'folds each fact into the task' },
  { file: server('feed/visible-entry.ts'), does: 'adds the cursor', via: [server('feed/task-feed.ts')] },
  { file: server('feed/fact-ring.ts'), does: 'keeps the newest facts' },
  { file: server('stream/viewer.ts'), does: 'picks the next fact of one client', via: [server('feed/task-feed.ts')] },
  { file: http('sse-sink.ts'), does: 'builds the frame', via: [server('stream/event-sink.ts')] },
  { file: a2a('dialect-0.3/dialect.ts'), does: "selects the client's dialect", via: [a2a('dialect.ts')] },
  { file: a2a('dialect-0.3/encode.ts'), does: 'encodes the event, once per dialect' },
  {
    file: http('sse-stream.ts'),
    does: 'sends the frame',
    via: [a2a('dialect-0.3/dialect.ts'), a2a('dialect.ts'), http('sse-sink.ts')],
  },
  { file: server('stream/paced-writer.ts'), does: 'writes it to the socket' },
];

export const TOKEN_PATH: CodePath = {
  name: 'token',
  title: "A token: from the agent's `yield` to the SSE frame",
  filesMax: 40,
  steps: [
    { file: agent('define-agent.ts'), does: 'turns the yielded string into an event' },
    { file: agent('run-attempt.ts'), does: 'reads the events of one attempt', via: [agent('agent.ts')] },
    { file: agent('abortable-events.ts'), does: 'ends them when the turn is cancelled' },
    { file: agent('turn-inputs.ts'), does: 'maps events to inputs', via: [agent('run-attempt.ts')] },
    { file: agent('answer-text.ts'), does: 'decides which artifact the text belongs to' },
    { file: agent('answer-deduplicator.ts'), does: 'removes what the agent repeats' },
    { file: agent('streamed-text.ts'), does: 'separates concurrent texts' },
    { file: agent('lane-writer.ts'), does: 'opens the lane' },
    {
      file: log('input-writer.ts'),
      does: 'batches tokens into records',
      via: [agent('turn-inputs.ts'), agent('run-attempt.ts')],
    },
    { file: jetstream('inputs.ts'), does: 'names the subject', via: [log('input-log.ts')] },
    { file: jetstream('codec.ts'), does: 'encodes the record' },
    { file: jetstream('publisher.ts'), does: 'publishes it until it is acknowledged' },
    ...INPUT_TO_PIPELINE,
    { file: fold('coalesced-text.ts'), does: 'passes its tokens to the coalescer', via: [relay('task-pipeline.ts')] },
    { file: coalesce('coalescer.ts'), does: 'decides when the text leaves' },
    { file: coalesce('lane.ts'), does: 'holds it and cuts the chunk' },
    {
      file: fold('append-queue.ts'),
      does: 'queues it while an append is in flight',
      via: [coalesce('coalescer.ts'), fold('coalesced-text.ts'), fold('text-cutter.ts'), fold('task-inputs.ts')],
    },
    { file: relay('task-appender.ts'), does: 'takes what fits into one record' },
    { file: task('decide.ts'), does: 'decides which facts follow', via: [fold('decide-batch.ts')] },
    { file: task('decide-run.ts'), does: 'appends to, or replaces, the artifact' },
    { file: task('decision.ts'), does: 'makes the fact' },
    {
      file: jetstream('facts.ts'),
      does: 'appends the record, fenced by the expected sequence',
      via: [task('decide.ts'), fold('decide-batch.ts'), relay('task-appender.ts'), log('fact-log.ts')],
    },
    ...FACT_TO_FRAME,
  ],
};

export const MESSAGE_PATH: CodePath = {
  name: 'message',
  title: "A client's message: from the HTTP request to the agent's turn",
  filesMax: 60,
  steps: [
    { file: http('register-a2a.ts'), does: 'routes the request' },
    { file: http('json-rpc-binding.ts'), does: 'selects dialect and operation' },
    { file: http('read-request.ts'), does: 'parses the body' },
    { file: a2a('json-rpc.ts'), does: 'reads the JSON-RPC request', via: [http('json-rpc-binding.ts')] },
    { file: http('operation-request.ts'), does: 'makes it independent of HTTP', via: [http('json-rpc-binding.ts')] },
    {
      file: server('run-operation.ts'),
      does: 'authenticates the caller and starts the span',
      via: [http('json-rpc-binding.ts')],
    },
    { file: server('operations/message-stream.ts'), does: 'runs the operation' },
    {
      file: a2a('dialect-0.3/dialect.ts'),
      does: 'selects the notation',
      via: [server('a2a-server.ts'), a2a('dialect.ts')],
    },
    { file: a2a('schema/decode-requests.ts'), does: 'checks the parameters' },
    { file: a2a('dialect-0.3/decode.ts'), does: 'decodes the message', via: [a2a('dialect-0.3/dialect.ts')] },
    {
      file: server('operations/resolve-request.ts'),
      does: 'checks that the server can take it',
      via: [a2a('dialect.ts'), server('a2a-server.ts')],
    },
    { file: server('operations/reserved-metadata.ts'), does: 'removes reserved metadata' },
    {
      file: server('operations/resolve-message.ts'),
      does: 'finds or creates its task',
      via: [server('operations/resolve-request.ts')],
    },
    { file: server('operations/turn.ts'), does: 'follows the task before anything is stored' },
    { file: server('operations/append-message.ts'), does: 'makes the input' },
    {
      file: jetstream('inputs.ts'),
      does: 'names the subject',
      via: [server('a2a-server.ts'), log('log.ts'), log('input-log.ts')],
    },
    { file: jetstream('codec.ts'), does: 'encodes the record' },
    { file: jetstream('publisher.ts'), does: 'publishes it until it is acknowledged' },
    ...INPUT_TO_PIPELINE,
    { file: fold('append-queue.ts'), does: 'queues it while an append is in flight' },
    { file: relay('task-appender.ts'), does: 'takes what fits into one record' },
    { file: task('decide.ts'), does: 'decides which facts follow', via: [fold('decide-batch.ts')] },
    { file: task('decide-client.ts'), does: 'creates the task, or begins its next turn' },
    {
      file: jetstream('facts.ts'),
      does: 'appends the record, fenced by the expected sequence',
      via: [task('decide.ts'), fold('decide-batch.ts'), relay('task-appender.ts'), log('fact-log.ts')],
    },
    {
      file: relay('side-effects.ts'),
      does: 'requests work of the supervisor',
      via: [log('fact-log.ts'), relay('task-pipeline.ts'), relay('pipeline-context.ts')],
    },
    { file: jetstream('work.ts'), does: 'queues the work item', via: [log('log.ts'), log('work-queue.ts')] },
    { file: jetstream('publisher.ts'), does: 'publishes it until it is acknowledged' },
    { file: jetstream('pull-inbox.ts'), does: 'receives the work item', over: 'a2a.work' },
    { file: jetstream('work-consumer.ts'), does: 'takes it when a slot is free' },
    { file: jetstream('work-item.ts'), does: 'decodes it and keeps it alive' },
    { file: supervisor('supervisor.ts'), does: 'starts the turn', via: [log('work-queue.ts'), log('log.ts')] },
    { file: supervisor('supervise.ts'), does: 'follows the task and conducts the turn' },
    { file: supervisor('planned-turn.ts'), does: 'plans which agents to call' },
    { file: supervisor('agent-calls.ts'), does: 'stores the call before its work' },
    {
      file: jetstream('work.ts'),
      does: "queues the agent's work item",
      via: [supervisor('turn-runner.ts'), supervisor('supervise.ts'), log('log.ts'), log('work-queue.ts')],
    },
    { file: jetstream('publisher.ts'), does: 'publishes it until it is acknowledged' },
    { file: jetstream('pull-inbox.ts'), does: 'receives the work item', over: 'a2a.work' },
    { file: jetstream('work-consumer.ts'), does: 'takes it when a slot is free' },
    { file: jetstream('work-item.ts'), does: 'decodes it and keeps it alive' },
    { file: agent('serve-agent.ts'), does: 'starts the turn', via: [log('work-queue.ts'), log('log.ts')] },
    { file: agent('run-turn.ts'), does: 'adds the history of the context' },
    { file: agent('run-attempt.ts'), does: 'runs the agent' },
    { file: agent('define-agent.ts'), does: "calls the agent's `run`", via: [agent('agent.ts')] },
  ],
};

/** All files of a path, each once, in the order of their first step. */
export const filesOf = ({ steps }: CodePath): string[] => [...new Set(steps.map(step => step.file))];
