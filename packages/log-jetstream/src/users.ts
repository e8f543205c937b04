import {
  LIVE_PREFIX,
  LOG_PREFIX,
  presenceSubject,
  RAW_PREFIX,
  type Role,
  readerSubject,
  readSubject,
  WORK_PREFIX,
  type Writer,
  wakeSubject,
  workersSubject,
  workFilter,
} from '@hopline/events';
import { BUCKETS, consumerName, type LogNames, QUEUES, type Queue } from './names.ts';

/**
 * The users of the log in NATS, one for each service, and the subjects that each may publish and subscribe to: the minimum that its
 * part of the log needs. infra/nats generates server configurations from them. PROTOCOL.md section 2.2.
 *
 * `operator` reads tasks and their inputs (`hopline trace --nats`). `agent.*` may be any agent, for clusters whose agents are not known beforehand.
 */
export type LogUser = 'relay' | 'ingress' | 'supervisor' | 'notifier' | 'operator' | `agent.${string}`;

export type AgentUser = Extract<LogUser, `agent.${string}`>;

/** The services with one user each. Sub-agents have one user for each agent. */
export const SERVICE_USERS = ['relay', 'ingress', 'supervisor', 'notifier', 'operator'] as const satisfies readonly LogUser[];
export const ANY_AGENT = 'agent.*';

/** The user that creates missing streams. All others wait for them. */
export const STREAM_CREATOR: LogUser = 'relay';

/** The writer of the inputs that a user appends. Undefined for a user that appends none. */
export function writerOfUser(user: LogUser): Writer | undefined {
  if (user === 'notifier' || user === 'operator') return undefined;
  return user === 'ingress' ? 'client' : user;
}

/** Prefix of the subjects at which a user receives answers: no other user may subscribe to it. */
export function inboxOf(user: LogUser, names: LogNames): string {
  return `_INBOX.${names.bucket('hopline')}.${user}`;
}

export type Permissions = { publish: string[]; publishDenied: string[]; subscribe: string[] };

/**
 * The subjects that pass between the account of an agent and that of the log, if agents have accounts of their own. `services`: subjects on which the account of the
 * log takes requests, each with at most one answer. `toLog`: messages to relays, which answer on a subject of `fromLog`.
 */
export type Exchange = { services: string[]; toLog: string[]; fromLog: string[] };

export function exchangeOf(user: AgentUser, names: LogNames): Exchange {
  const { publish, subscribe } = permissionsOf(user, names);
  const name = user.slice('agent.'.length);
  const below = (subject: string) => `${names.subject(subject)}.`;
  const isToLog = (subject: string) => `${subject}.`.startsWith(below(readSubject(name)));
  // Processes of one agent, which are in one account.
  const siblings = [below(wakeSubject(name)), below(workersSubject(user))];
  const isToSibling = (subject: string) => siblings.some(prefix => `${subject}.`.startsWith(prefix));
  return {
    services: publish.filter(subject => !isToLog(subject) && !isToSibling(subject)),
    toLog: publish.filter(isToLog),
    // Relays and supervisors report new work to the workers of an agent.
    fromLog: [...subscribe.filter(subject => !isToSibling(subject)), names.subject(workersSubject(user))],
  };
}

/** `earlierAgents`: agents of a version before 2026-11-30 ask the JetStream API for what later ones ask relays. */
export type PermissionOptions = { earlierAgents?: boolean };

export function permissionsOf(user: LogUser, names: LogNames, { earlierAgents = false }: PermissionOptions = {}): Permissions {
  const rights = new Rights(names);
  rights.answers(user);
  if (!user.startsWith('agent.') || earlierAgents) rights.inspectStreams();
  if (user === 'relay') relay(rights);
  else if (user === 'ingress') ingress(rights);
  else if (user === 'supervisor') supervisor(rights);
  else if (user === 'notifier') notifier(rights);
  else if (user === 'operator') operator(rights);
  else agent(rights, user, earlierAgents);
  return rights.permissions;
}

function relay(rights: Rights): void {
  rights.createStreams();
  rights.removeUnknown();
  rights.placeLeaders();
  rights.publish(`${LOG_PREFIX}.*.*`, `${RAW_PREFIX}.*.*.relay`);
  rights.requestWork('supervisor', ANY_AGENT);
  rights.findPlaces();
  rights.readInputs();
  rights.readShards();
  rights.followFacts();
  rights.readForAgents();
  rights.watch('leases');
  rights.write('leases', 'relay.*', 'shard.*');
  rights.findMembers('relay.*');
  // Read once, for tasks that relays of the previous version entered.
  rights.watch('tasks');
  rights.write('tasks', '*');
  rights.match('taskLists');
  rights.write('taskLists', '*.*.*.t.*', '*.*.*.ended', '*.*.*.ended.*', '*.*.stored');
  rights.purge('taskLists');
}

function ingress(rights: Rights): void {
  rights.publish(`${RAW_PREFIX}.*.*.client`);
  // Needed for the audit of a task.
  rights.readInputs();
  rights.followFacts();
  rights.inspectWork('*');
  // Servers of an earlier version follow all webhooks when a caller has many.
  rights.watch('tasks', 'agents', 'pushConfigs');
  rights.listTasks();
  rights.get('messageIds', 'contexts', 'pushConfigs', 'pushProgress');
  rights.write('taskLists', '*.*.*.t.*');
  rights.write('messageIds', '*');
  rights.write('contexts', '*');
  rights.write('pushConfigs', '*.*');
  // A webhook that is deleted or replaced leaves no count entry.
  rights.purge('pushConfigs');
}

function supervisor(rights: Rights): void {
  rights.publish(`${RAW_PREFIX}.*.*.supervisor`);
  rights.requestWork(ANY_AGENT);
  rights.findPlaces();
  rights.compareInput();
  rights.followFacts();
  rights.takeWork('supervisor');
  rights.createWorkConsumers('supervisor');
  rights.get('requeues');
  rights.watch('agents');
}

function notifier(rights: Rights): void {
  rights.followFacts();
  rights.watch('leases', 'pushConfigs', 'pushProgress');
  rights.write('leases', 'notifier.*', 'notifier-shard.*');
  rights.findMembers('notifier.*');
  rights.write('pushProgress', '*.*');
  // Removes webhooks of tasks that never started, and what deleted ones leave.
  rights.purge('pushConfigs');
  rights.purge('pushProgress');
}

function operator(rights: Rights): void {
  rights.readInputs();
  rights.readFacts();
}

/**
 * A sub-agent may pull and acknowledge its work, and uses the JetStream API for nothing else, because NATS stores the answers of its API wherever a request
 * asks for them. Relays read for it, if it is about its own tasks, and create the consumers of its work.
 */
function agent(rights: Rights, user: AgentUser, isEarlier: boolean): void {
  const name = user.slice('agent.'.length);
  rights.publish(`${RAW_PREFIX}.*.*.${user}`, wakeSubject(name));
  rights.subscribe(wakeSubject(name));
  rights.publish(readSubject(name), readerSubject(name, '*'));
  rights.takeWork(user);
  if (isEarlier) {
    rights.createWorkConsumers(user);
    rights.get('agents', 'messageIds', 'contexts', 'requeues');
  }
  rights.write('agents', `${name}.*`);
  rights.write('messageIds', '*');
  rights.write('contexts', '*');
}

type Bucket = keyof typeof BUCKETS;

/** Buckets without which an operation of a service fails. All services need the streams of tasks. */
const NEEDED_BUCKETS: Record<(typeof SERVICE_USERS)[number] | 'agent', readonly Bucket[]> = {
  relay: ['leases', 'tasks', 'taskLists'],
  ingress: ['leases', 'tasks', 'taskLists', 'agents', 'messageIds', 'contexts', 'pushConfigs'],
  supervisor: ['agents', 'requeues'],
  notifier: ['leases', 'pushConfigs', 'pushProgress'],
  operator: [],
  agent: ['agents', 'messageIds', 'contexts', 'requeues'],
};

/** The streams, including those of buckets, without which a service is not ready: all of them for tools and tests. */
export function streamsNeededBy(user: LogUser | undefined, names: LogNames): string[] {
  if (user === undefined) return names.allStreams();
  const buckets = NEEDED_BUCKETS[user.startsWith('agent.') ? 'agent' : (user as (typeof SERVICE_USERS)[number])];
  const ofBuckets = buckets.map(name => `KV_${names.bucket(BUCKETS[name])}`);
  return [...names.inputsStreams, ...names.factsStreams, names.workStream, ...ofBuckets];
}

/** Collects the subjects that a user needs, in the terms of NATS and its JetStream API. */
class Rights {
  readonly permissions: Permissions = { publish: [], publishDenied: [], subscribe: [] };
  readonly #names: LogNames;

  constructor(names: LogNames) {
    this.#names = names;
  }

  answers(user: LogUser): void {
    this.permissions.subscribe.push(`${inboxOf(user, this.#names)}.>`);
  }

  /** Reading the state of the streams, which every service checks at its start. */
  inspectStreams(): void {
    this.#api('INFO', ...this.#names.allStreams().map(stream => `STREAM.INFO.${stream}`));
  }

  publish(...subjects: string[]): void {
    this.permissions.publish.push(...subjects.map(subject => this.#names.subject(subject)));
  }

  subscribe(subject: string): void {
    this.permissions.subscribe.push(this.#names.subject(subject));
  }

  /** Registers the user's presence, and detects that another process is gone. */
  findMembers(members: string): void {
    this.publish(presenceSubject(members));
    this.subscribe(presenceSubject(members));
  }

  /** Answers requests of agents, which read only their own tasks. */
  readForAgents(): void {
    const requests = [readSubject('*'), readerSubject('*', '*')].map(subject => this.#names.subject(subject));
    this.permissions.subscribe.push(...requests);
    this.permissions.publish.push(`${inboxOf(ANY_AGENT, this.#names)}.>`);
    this.match('leases', 'shard.*');
    this.get('agents', 'messageIds', 'contexts', 'requeues');
    const { workStream } = this.#names;
    this.#api(`CONSUMER.CREATE.${workStream}.*.${this.#names.subject(`${WORK_PREFIX}.agent.>`)}`);
  }

  /** Creating an existing stream changes nothing; updating it adds missing limits. */
  createStreams(): void {
    this.#api(...this.#names.allStreams().flatMap(stream => [`STREAM.CREATE.${stream}`, `STREAM.UPDATE.${stream}`]));
  }

  /** Removes objects that are not Hopline's: consumers on any stream, and work items that no worker takes. */
  removeUnknown(): void {
    this.#api(...this.#names.allStreams().flatMap(stream => [`CONSUMER.LIST.${stream}`, `CONSUMER.DELETE.${stream}.*`]));
    this.#api(`STREAM.PURGE.${this.#names.workStream}`);
  }

  /** Asks the leader of a stream to hand over. */
  placeLeaders(): void {
    this.#api(...this.#names.allStreams().map(stream => `STREAM.LEADER.STEPDOWN.${stream}`));
  }

  readInputs(): void {
    for (const stream of this.#names.inputsStreams) this.#read(stream, this.#names.subject(`${RAW_PREFIX}.>`));
  }

  /** A consumer with a list of subjects. */
  readShards(): void {
    this.#api(...this.#names.inputsStreams.map(stream => `CONSUMER.CREATE.${stream}.*`));
  }

  /** Reads one input by its sequence, for a writer whose id is already stored. NATS wraps it in JSON, so it cannot pass for a record. */
  compareInput(): void {
    this.#api(...this.#names.inputsStreams.map(stream => `STREAM.MSG.GET.${stream}`));
  }

  readFacts(): void {
    for (const stream of this.#names.factsStreams) {
      this.#read(stream, this.#names.subject(`${LOG_PREFIX}.*.*`));
      this.#api(`DIRECT.GET.${stream}`);
    }
  }

  /** Reads the lists of callers, the newest records of the tasks in them, and whether the relays write the lists of all shards. */
  listTasks(): void {
    this.match('taskLists');
    this.match('leases', 'shard.*');
  }

  followFacts(): void {
    this.readFacts();
    // A request with a list of subjects has no filter at the end of the API subject. That is harmless here, because the stream has no other
    // subjects.
    for (const stream of this.#names.factsStreams)
      this.#api(`DIRECT.GET.${stream}.${this.#names.subject(`${LOG_PREFIX}.*.*`)}`, `CONSUMER.CREATE.${stream}.*`);
    this.subscribe(`${LIVE_PREFIX}.*.*`);
  }

  get(...buckets: Bucket[]): void {
    for (const name of buckets) this.#api(`STREAM.MSG.GET.KV_${this.#names.bucket(BUCKETS[name])}`);
  }

  watch(...buckets: Bucket[]): void {
    for (const name of buckets) {
      const bucket = this.#names.bucket(BUCKETS[name]);
      this.#read(`KV_${bucket}`, `$KV.${bucket}.>`);
    }
  }

  /** Entries whose keys match a pattern: by a direct get, and through a consumer where the server lacks it. */
  match(name: Bucket, filter = '>'): void {
    const bucket = this.#names.bucket(BUCKETS[name]);
    this.#api(`DIRECT.GET.KV_${bucket}`, `STREAM.MSG.GET.KV_${bucket}`);
    this.#api(`CONSUMER.CREATE.KV_${bucket}.*.$KV.${bucket}.${filter}`);
    this.#api(`CONSUMER.MSG.NEXT.KV_${bucket}.*`, `CONSUMER.DELETE.KV_${bucket}.*`);
  }

  purge(bucket: Bucket): void {
    this.#api(`STREAM.PURGE.KV_${this.#names.bucket(BUCKETS[bucket])}`);
  }

  write(name: Bucket, ...keys: string[]): void {
    this.permissions.publish.push(...keys.map(key => `$KV.${this.#names.bucket(BUCKETS[name])}.${key}`));
  }

  /** Allows queueing work without an owner, and work of tenants. */
  requestWork(...roles: string[]): void {
    for (const role of roles)
      this.publish(`${WORK_PREFIX}.${role}.*`, `${WORK_PREFIX}.${role}.*.*.*`, workersSubject(role as Role));
  }

  /** Counts the work that waits for a role. */
  inspectWork(consumer: string): void {
    this.#api(`CONSUMER.INFO.${this.#names.workStream}.${consumer}`);
  }

  /** Finds the place of an item in its queue. NATS wraps the item in JSON, so it cannot pass for a record or another item. */
  findPlaces(): void {
    this.inspectWork('*');
    this.#api(`STREAM.MSG.GET.${this.#names.workStream}`);
  }

  takeWork(role: Role | typeof ANY_AGENT): void {
    const { workStream } = this.#names;
    const isAny = role === ANY_AGENT;
    for (const queue of QUEUES) {
      const consumer = workConsumer(role, queue);
      this.#api(`CONSUMER.MSG.NEXT.${workStream}.${consumer}`);
      if (!isAny) {
        this.permissions.publish.push(...acks(workStream, consumer));
        continue;
      }
      const denied = consumerName('supervisor', queue);
      const api = ['CONSUMER.INFO', 'CONSUMER.CREATE', 'CONSUMER.MSG.NEXT'].map(
        call => `$JS.API.${call}.${workStream}.${denied}`,
      );
      this.permissions.publishDenied.push(...api, `$JS.API.CONSUMER.CREATE.${workStream}.${denied}.>`);
      this.permissions.publishDenied.push(...acks(workStream, denied));
    }
    if (isAny) this.permissions.publish.push(...acks(workStream, '*'));
    this.write('requeues', `${role}.*.*`);
    this.#answerSiblings(role);
  }

  createWorkConsumers(role: Role | typeof ANY_AGENT): void {
    const { workStream } = this.#names;
    for (const queue of QUEUES) {
      const consumer = workConsumer(role, queue);
      this.inspectWork(consumer);
      this.#api(`CONSUMER.CREATE.${workStream}.${consumer}.${this.#names.subject(workFilter(role, queue))}`);
    }
  }

  /** The workers of a role ask each other whether they live. */
  #answerSiblings(role: Role | typeof ANY_AGENT): void {
    const workers = workersSubject(role as Role);
    this.publish(workers, `${workers}.>`);
    this.permissions.subscribe.push(...[workers, `${workers}.>`].map(subject => this.#names.subject(subject)));
  }

  /** Consumers that live for one read. Their names are random, so that a user cannot guess those of another. */
  #read(stream: string, filter: string): void {
    this.#api(`STREAM.MSG.GET.${stream}`, `CONSUMER.CREATE.${stream}.*.${filter}`);
    this.#api(`CONSUMER.MSG.NEXT.${stream}.*`, `CONSUMER.DELETE.${stream}.*`);
  }

  #api(...calls: string[]): void {
    const { publish } = this.permissions;
    for (const call of calls) if (!publish.includes(`$JS.API.${call}`)) publish.push(`$JS.API.${call}`);
  }
}

/** A consumer name is one token, which a subject pattern cannot match in part. */
function workConsumer(role: Role | typeof ANY_AGENT, queue: Queue): string {
  return role === ANY_AGENT ? '*' : consumerName(role, queue);
}

/**
 * Both forms of the subject of an acknowledgement: newer servers put domain and account before the stream. The number of tokens is part of the pattern. With a
 * `>` in its place, stream and consumer of one form could stand where the other form has numbers, so that the subject would reach any other consumer, and `+NXT`
 * on it takes the messages of that consumer (ADR 268).
 */
function acks(stream: string, consumer: string): string[] {
  return [`$JS.ACK.${stream}.${consumer}.*.*.*.*.*`, `$JS.ACK.*.*.${stream}.${consumer}.*.*.*.*.>`];
}
