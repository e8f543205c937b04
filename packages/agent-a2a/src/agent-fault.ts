type FaultDetails = ErrorOptions & { word?: string; retryAfterMs?: number | undefined };

/** Why a turn with a remote agent failed: one sentence without content or credentials. */
export class AgentFault extends Error {
  override readonly name = 'AgentFault';
  readonly retryable: boolean;
  /** The reason as a word of a closed list, for spans. */
  readonly word: string;
  /** The agent's `Retry-After`. */
  readonly retryAfterMs: number | undefined;

  constructor(reason: string, retryable: boolean, { word, retryAfterMs, ...options }: FaultDetails = {}) {
    super(reason, options);
    this.retryable = retryable;
    this.word = word ?? WORDS[reason] ?? 'remote_fault';
    this.retryAfterMs = retryAfterMs;
  }

  /** The agent did not answer within the time limit of the request. */
  get isDeadline(): boolean {
    return this.word === TOO_SLOW;
  }
}

export const NO_JSON_RPC =
  "the agent's card has no JSON-RPC interface of A2A 0.2, 0.3 or 1.0, the only binding Hopline uses for agents";
export const AGENT_UNREACHABLE = 'the agent cannot be reached';
export const NO_TERMINAL_STATE = 'the stream ended without a terminal state';
export const NOT_JSON = 'the agent sent something other than JSON';

const WORDS: Readonly<Record<string, string>> = {
  [AGENT_UNREACHABLE]: 'unreachable',
  [NO_TERMINAL_STATE]: 'stream_cut',
  [NO_JSON_RPC]: 'no_json_rpc',
  [NOT_JSON]: 'not_json',
};

/** The fault of an agent that answers with an error of JSON-RPC. */
export function rpcFault({ code, retryable }: { code: number; retryable: boolean }, retryAfterMs?: number): AgentFault {
  return new AgentFault(`the agent answered with error ${code}`, retryable || code === -32603, {
    word: rpcWord(code),
    retryAfterMs,
  });
}

/** JSON-RPC's own errors are shown by name, because a five-digit number would look like an id. */
function rpcWord(code: number): string {
  if (code === -32603) return 'rpc_internal_error';
  if (code === -32602) return 'rpc_invalid_params';
  return code === -32601 ? 'rpc_method_not_found' : 'rpc_error';
}

export function silenceFault(ms: number): AgentFault {
  return new AgentFault(`the agent sent nothing for ${ms / 1000} s`, true, { word: 'silent' });
}

/** The word of `totalFault`, by which `isDeadline` recognizes it. */
const TOO_SLOW = 'too_slow';

export function totalFault(): AgentFault {
  return new AgentFault('the turn took too long', false, { word: TOO_SLOW });
}
