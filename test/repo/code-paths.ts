/** A file on a path. It decides about the text, keeps it, rewrites it or passes it on. */
export type PathStep = {
  file: string;
  /** What the file does with the token or message, as the rest of a sentence that begins with the file's name. */
  does: string;
  /** Files that connect this step with the previous one if neither imports the other: an interface of both, or the file that calls both. */
  via?: readonly string[];
  /** The subject on which the previous step publishes for this one. */
  over?: 'a2a.raw' | 'a2a.live' | 'a2a.work';
};

export type CodePath = {
  /** Name of the marked section of docs/reference/code-paths.md. */
  name: string;
  title: string;
  /** Files of the steps, each counted once. */
  filesMax: number;
  steps: readonly PathStep[];
};

/** The token's path lists every production file that executes for a token: the measurement of token-path.test.ts compares them. */
export type TokenPath = CodePath & {
  beside: readonly FilesBeside[];
  /** Files that execute for one token, including those of the steps. */
  executedMax: number;
};

/** Files that execute for a token but are not a step. Each value states what the file does with it, as the rest of a sentence. */
export type FilesBeside = { do: string; files: readonly string[] };

const inPackage = (name: string) => (file: string) => `packages/${name}/src/${file}`;
const a2a = inPackage('a2a');
const agent = inPackage('agent');
const coalesce = inPackage('coalesce');
const events = inPackage('events');
const fold = inPackage('fold');
const http = inPackage('a2a-http');
const jetstream = inPackage('log-jetstream');
const log = inPackage('log');
const server = inPackage('a2a-server');
const task = inPackage('task');
const telemetry = inPackage('telemetry');
const relay = (file: string) => `services/relay/src/${file}`;
const supervisor = (file: string) => `services/supervisor/src/${file}`;

/** From a2a.raw to the pipeline of a task. */
const INPUT_TO_PIPELINE: readonly PathStep[] = [
  { file: jetstream('pull-inbox.ts'), does: 'receives the stored message, and reads its sequence and time', over: 'a2a.raw' },
  { file: jetstream('ordered-reader.ts'), does: 'keeps the order of the stream' },
  { file: jetstream('shard-readers.ts'), does: 'passes it to its shard' },
  { file: jetstream('inputs.ts'), does: 'decodes the record' },
  { file: relay('shard.ts'), does: 'passes it to the pipeline of its task', via: [log('input-log.ts')] },
  { file: relay('task-pipeline.ts'), does: 'accepts it in the order of the log' },
  { file: fold('task-inputs.ts'), does: 'skips what is folded already' },
];

export const TOKEN_PATH: TokenPath = {
  name: 'token',
  title: "A token: from the agent's `yield` to the SSE frame",
  filesMax: 44,
  executedMax: 75,
  steps: [
    { file: agent('define-agent.ts'), does: 'turns the yielded string into an event' },
    { file: agent('pump-events.ts'), does: 'reads the events until one ends the turn, or the turn is cancelled' },
    { file: agent('turn-inputs.ts'), does: 'maps events to inputs' },
    { file: agent('text-streams.ts'), does: 'decides which lane the text belongs to' },
    { file: agent('lane-writer.ts'), does: 'opens the lane' },
    { file: log('input-writer.ts'), does: 'batches tokens into records' },
    { file: log('text-pace.ts'), does: 'lets the text of all tasks leave together' },
    { file: coalesce('text-hold.ts'), does: 'decides when the record leaves' },
    { file: coalesce('arrival-model.ts'), does: 'predicts the next token' },
    { file: coalesce('hold-policy.ts'), does: 'weighs waiting for it against sending one more chunk' },
    { file: jetstream('inputs.ts'), does: 'names the subject' },
    { file: jetstream('codec.ts'), does: 'encodes the record' },
    { file: jetstream('publisher.ts'), does: 'publishes it until it is acknowledged' },
    { file: jetstream('pull-inbox.ts'), does: 'receives the stored message, and reads its sequence and time', over: 'a2a.raw' },
    { file: jetstream('ordered-reader.ts'), does: 'keeps the order of the stream' },
    { file: jetstream('shard-readers.ts'), does: 'passes it to its shard' },
    { file: events('decode-input.ts'), does: 'decodes the record' },
    { file: relay('shard.ts'), does: 'passes it to the pipeline of its task' },
    { file: relay('task-pipeline.ts'), does: 'accepts it in the order of the log' },
    { file: fold('task-inputs.ts'), does: 'skips what is folded already' },
    { file: fold('ordinal-deduplicator.ts'), does: 'skips the tokens that the producer has sent before' },
    { file: fold('coalesced-text.ts'), does: 'passes its tokens to the coalescer' },
    { file: coalesce('coalescer.ts'), does: 'holds the text of a lane, unless its producer has held it, and cuts the chunk' },
    { file: coalesce('text-cut.ts'), does: 'keeps characters whole' },
    { file: fold('coalesced-text.ts'), does: 'knows from which inputs the chunk was made' },
    { file: fold('append-queue.ts'), does: 'queues it while an append is in flight' },
    { file: relay('task-appender.ts'), does: 'takes what fits into one record' },
    { file: fold('decide-batch.ts'), does: 'decides all of it as one batch' },
    { file: task('decide.ts'), does: 'decides which facts follow' },
    { file: task('decide-agent.ts'), does: 'checks its producer, and appends to or replaces the artifact' },
    { file: task('decision.ts'), does: 'makes the fact' },
    { file: task('evolve.ts'), does: 'applies it to the aggregate in the record' },
    { file: jetstream('facts.ts'), does: 'appends the record, fenced by the expected sequence' },
    { file: jetstream('compact-record.ts'), does: 'leaves out what the record repeats' },
    { file: jetstream('live-record.ts'), does: 'decodes the republished record', over: 'a2a.live' },
    { file: log('follow.ts'), does: 'splices stored and live records' },
    { file: log('read-task.ts'), does: 'merges facts that were copied forward' },
    { file: server('feed/task-feed.ts'), does: 'follows the task once for all viewers' },
    { file: server('feed/held-view.ts'), does: 'holds the task for snapshots' },
    { file: task('project.ts'), does: 'folds each fact into the task' },
    { file: server('feed/visible-entry.ts'), does: 'adds the cursor' },
    { file: server('feed/fact-ring.ts'), does: 'keeps the newest facts' },
    { file: server('stream/viewer.ts'), does: 'picks the next fact of one client' },
    { file: http('sse-sink.ts'), does: 'makes the frame' },
    { file: a2a('dialect-0.3/encode.ts'), does: "encodes the event in the client's dialect, once for all its clients" },
    { file: http('sse-sink.ts'), does: 'writes the frames of one turn of the event loop to the socket' },
  ],
  beside: [
    {
      do: 'Read or build part of it for a step',
      files: [
        a2a('code-points.ts'),
        a2a('json-value.ts'),
        a2a('types.ts'),
        agent('abortable-events.ts'),
        agent('growing-text.ts'),
        events('context-id.ts'),
        events('cursor.ts'),
        events('facts.ts'),
        events('inputs.ts'),
        log('names.ts'),
        jetstream('ack.ts'),
        jetstream('connection.ts'),
        jetstream('message-headers.ts'),
        jetstream('task-subjects.ts'),
      ],
    },
    {
      do: 'Account for it',
      files: [
        fold('input-ledger.ts'),
        relay('relay.ts'),
        relay('shown-tasks.ts'),
        relay('side-effects.ts'),
        relay('stored-records.ts'),
        log('bounded-map.ts'),
        server('feed/byte-budget.ts'),
      ],
    },
    {
      do: 'Measure it',
      files: [
        agent('turn-metrics.ts'),
        jetstream('append-health.ts'),
        relay('report-stored.ts'),
        relay('task-hop.ts'),
        server('stream/delivery-meter.ts'),
        telemetry('histogram.ts'),
        telemetry('hop-span.ts'),
        telemetry('metrics.ts'),
      ],
    },
    {
      do: 'Follow the task as well',
      files: [supervisor('supervise.ts'), supervisor('turn-view.ts')],
    },
  ],
};

export const MESSAGE_PATH: CodePath = {
  name: 'message',
  title: "A client's message: from the HTTP request to the agent's turn",
  filesMax: 60,
  steps: [
    { file: http('register-a2a.ts'), does: 'routes the request' },
    { file: http('json-rpc-binding.ts'), does: 'selects dialect and operation' },
    { file: http('request-values.ts'), does: 'parses the body' },
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
    {
      file: a2a('dialect-0.3/decode.ts'),
      does: 'decodes the message',
      via: [a2a('dialect-0.3/dialect.ts'), a2a('dialect-0.3/decode-requests.ts')],
    },
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
      does: 'requests work from the supervisor',
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
    { file: supervisor('agent-calls.ts'), does: 'decides how clients see the call and its answer' },
    {
      file: supervisor('call-items.ts'),
      does: 'makes the call, with what its work needs',
      via: [supervisor('turn-runner.ts'), supervisor('supervise.ts')],
    },
    { file: log('input-writer.ts'), does: 'puts it into a record' },
    { file: jetstream('inputs.ts'), does: 'names the subject', via: [log('input-log.ts')] },
    { file: jetstream('codec.ts'), does: 'encodes the record' },
    { file: jetstream('publisher.ts'), does: 'publishes it until it is acknowledged' },
    ...INPUT_TO_PIPELINE,
    { file: fold('append-queue.ts'), does: 'queues it while an append is in flight' },
    { file: relay('task-appender.ts'), does: 'takes what fits into one record' },
    { file: task('decide.ts'), does: 'decides which facts follow', via: [fold('decide-batch.ts')] },
    { file: task('decide-agent.ts'), does: 'begins the call' },
    {
      file: jetstream('facts.ts'),
      does: 'appends the record, fenced by the expected sequence',
      via: [task('decide.ts'), fold('decide-batch.ts'), relay('task-appender.ts'), log('fact-log.ts')],
    },
    {
      file: relay('side-effects.ts'),
      does: 'requests work from the agent',
      via: [log('fact-log.ts'), relay('task-pipeline.ts'), relay('pipeline-context.ts')],
    },
    { file: jetstream('work.ts'), does: 'queues the work item', via: [log('log.ts'), log('work-queue.ts')] },
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

/** The files of a path's steps without repetitions, in the order of their first step. */
export const filesOf = ({ steps }: CodePath): string[] => [...new Set(steps.map(step => step.file))];

/** All files that execute for a token. */
export const executedFilesOf = (path: TokenPath): string[] => [...filesOf(path), ...path.beside.flatMap(({ files }) => files)];
