/** A word or phrase that this repository no longer uses. */
export type RetiredWord = {
  /** Name in reports. */
  word: string;
  /**
   * Matched against each line after identifiers are split into lower-case words (`isToldBy`, `IS_TOLD_BY` and `is-told-by` all read "is told
   * by"); with `verbatim`, against the line as it is.
   */
  pattern: RegExp;
  verbatim?: true;
  /** What to write instead. */
  use: string;
};

const words = (word: string, forms: string, use: string): RetiredWord => ({
  word,
  pattern: new RegExp(`(?<![a-z])(?:${forms})(?![a-z])`),
  use,
});

/** A name that was replaced by the rename of a type, a package, a setting, a bucket or a metric. */
const name = (old: string, use: string): RetiredWord => ({
  word: old,
  pattern: new RegExp(`(?<![\\w-])${old.replaceAll('.', '\\.')}(?![\\w-])`),
  verbatim: true,
  use,
});

/** A type whose name is an ordinary English word, matched only where code declares or uses a type. */
const typeName = (old: string, use: string): RetiredWord => ({
  word: old,
  pattern: new RegExp(`(?:\\b(?:type|class|interface|new|extends|implements|as)\\s+|[:<|&]\\s*)${old}\\b(?!\\s+[a-z0-9])`),
  verbatim: true,
  use,
});

export const RETIRED_WORDS: readonly RetiredWord[] = [
  words('door', 'doors?', 'server, a2a-server, binding'),
  words('say', 'says?|said|saying|(?:un)?sayable', 'append (log), publish, send, state; the noun: text, payload, message'),
  words('tell', 'tells?|told|telling', 'send, deliver (webhooks), report, notify'),
  words('announce', 'announce[sd]?|announcing|announcements?', 'register (agents), publish'),
  words('carry', 'carry|carries|carried|carrying', 'contain, have; copy forward'),
  words('books', 'books', 'input ledger'),
  words('foreign', 'foreign(?:er|ers)?', 'remote, other, third-party'),
  words('hand back', 'hand(?:s|ed|ing)? backs?|backs handed', 'requeue (work), return'),
  words('give up', 'giv(?:e|es|en|ing) up|gave up', 'abandon, stop'),
  words('beat', 'beats?', 'heartbeat'),
  words('hear', 'hears?|heard|hearing', 'receive, see'),
  words('nobody', 'nobody', 'name the component; "no client", "is off"'),
  words('somebody', 'somebody|anybody|everybody', 'name the component: a client, any producer, each reader'),
  words('whoever', 'whoever|whomever', 'any client that …, the process that …, any …'),
  words('for ever', 'for ever', 'indefinitely, forever'),
  words('at all', 'at all(?! (?:of|the|times|levels|costs)\\b)', 'leave it out'),
  words('anew', 'anew', 'again'),
  words('of before', 'of before', 'earlier, previous'),
  words('is none', '(?<!there )(?:is|are) none(?! of)', 'is not one, is missing, is invalid'),
  {
    word: 'Who …',
    pattern: /(?:^|[.;:] |\/\/ |\* )Who (?![^?]*\?)(?=[a-z])/,
    verbatim: true,
    use: 'a noun: the caller, the owner, a client that …',
  },
  // Types and functions.
  name('TaskControl', 'TaskAggregate'),
  name('CarriedFacts', 'CopiedFacts'),
  name('FoldQueue', 'AppendQueue'),
  name('CheckpointHolds', 'CheckpointBarriers'),
  name('HeldTokens', 'PendingTokens'),
  name('DropReason', 'RejectionReason'),
  name('AgentItem', 'AgentCommand'),
  name('ClientItem', 'ClientCommand'),
  name('knownOf', 'alreadyFolded'),
  name('lendTheKit', 'linkAgentKit'),
  name('enterConversation', 'joinContext'),
  name('readConversation', 'readContextHistory'),
  typeName('Admission', 'OrdinalDeduplicator (relay), ResolvedMessage (server)'),
  typeName('Around', 'the noun it holds'),
  typeName('Backwards', 'HistoryBuilder'),
  typeName('Earlier', 'PriorAttempts'),
  typeName('Left', 'the noun it holds'),
  typeName('Pile', 'PendingDelay'),
  typeName('Place', 'the noun it holds'),
  typeName('Pulse', 'TurnMetrics'),
  typeName('Seen', 'the noun it holds'),
  // Packages.
  name('packages/auth', 'packages/endpoint'),
  name('packages/audit', 'packages/task-audit'),
  name('packages/conversation', 'packages/context-history'),
  name('packages/shard-leases', 'packages/log/src/shard-leases'),
  name('packages/agent-recording', 'packages/agent/src/recording'),
  name('packages/a2a-proto-03', 'packages/a2a/src/dialect-0.3-proto'),
  name('@hopline/auth', '@hopline/endpoint'),
  name('@hopline/audit', '@hopline/task-audit'),
  name('@hopline/conversation', '@hopline/context-history'),
  // Settings and metrics.
  name('HOPLINE_HEARTBEAT_MS', 'HOPLINE_SSE_HEARTBEAT_MS'),
  name('HOPLINE_WEBHOOK_LANES_MAX', 'HOPLINE_WEBHOOK_WORKERS_MAX'),
  name('hopline.in_bytes', 'hopline.bytes_in'),
  name('hopline.out_bytes', 'hopline.bytes_out'),
  name('hopline.pushes', 'hopline.webhook_deliveries'),
];

/** Sentences that read as translated, as far as one line shows it. */
export const SENTENCE_PATTERNS: readonly RetiredWord[] = [
  {
    word: 'Of …',
    pattern: /(?:^|[.;:] |\/\/ |\* |['"`(] ?)Of (?!course\b)(?=[a-zA-Z0-9`])|\b(?:test|it)\(['"`]of /,
    verbatim: true,
    use: 'the subject first: "A longer text shows …", not "Of a longer text … is shown"',
  },
  {
    word: 'is no X',
    pattern: /(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|fewer\b|\w+er than\b)(?=[A-Za-z`])/,
    verbatim: true,
    use: 'is not a X',
  },
  {
    word: 'alone',
    pattern: /(?<=[\w'’`)] )(?<!\b(?:left|leaves?|leaving|const|let) )alone(?=\.(?!\w)|[;:,)]|\s*\*\/|['"`]|$)/,
    verbatim: true,
    use: 'only, before the word that it limits; by itself',
  },
  {
    word: 'What is …',
    pattern:
      /(?:^|[.;:] |\/\/ |\* )(?:What|Where|Whose) (?:is|are|was|were|has|have|had|cannot|can|could|does|did|differs?|stands?|comes?|came|falls?|fits?|must|may|lacks?|throws?|writes?|starts?|keeps?|no|none|nothing|only|remains)\b(?![^?]*\?)/,
    verbatim: true,
    use: 'a noun as the subject: "Later events are …", not "What is stored later is …"',
  },
  {
    word: ', unit.',
    pattern: /[;,] (?:(?:milliseconds|seconds|bytes|characters|ms)\.(?= |$|\*)|milliseconds[:;] )/,
    verbatim: true,
    use: 'the unit in the name, or "in milliseconds" where the quantity is',
  },
  {
    word: 'the version before',
    pattern: /\b(?:version|release) before(?=[.,;:)']| of\b| has\b| keeps?\b)/,
    verbatim: true,
    use: 'the previous version, the previous release',
  },
  {
    word: 'the run before',
    pattern: /\bthe (?:attempt|credentials|one|page|run|turn|view) before(?=[.,;:)']| (?:are|had|has|is|was)\b)/,
    verbatim: true,
    use: 'the previous run, the earlier one',
  },
  {
    word: ', also after',
    pattern: /, also (?:after|an?|before|beside|from|if|in|inside|of|one|over|those|where|while|without) /,
    verbatim: true,
    use: 'even after …; including those …; "also" before the verb',
  },
  {
    word: 'after so many',
    pattern: /\b(?:after|at least|at most|exactly|for|with) so (?:long|many|much)\b(?! (?:as|that)\b)/,
    verbatim: true,
    use: 'this many, that long',
  },
  {
    word: 'a run at a server',
    pattern: /\b(?:begins|begun|began|runs?) at (?:a|the) server\b/,
    verbatim: true,
    use: 'on a server',
  },
  {
    word: 'at the begin',
    pattern: /\bat the begin\b|\bthe time since when\b/,
    verbatim: true,
    use: 'at the beginning; the time at which it began',
  },
  {
    word: 'Overrides of',
    pattern: /\bOverrides of\b/,
    verbatim: true,
    use: 'values that replace those of …',
  },
];

/** Idioms, and text that a test sends as data or quotes from other projects. */
export const ALLOWED_CONTEXTS: readonly RegExp[] = [
  /\bor not at all\b/g,
  /\bSay hello\b|\bsay-hello\b/g,
  /\bYou said \b/g,
  /\bis None\b/g,
];
