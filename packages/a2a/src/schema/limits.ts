/** Bounds of one request. The size of its body is checked before them. */

/** Characters of a task, context, message or artifact id. */
export const ID_CHARS_MAX = 256;
/** Parts of one message. */
export const PARTS_MAX = 256;
/** Entries of `extensions`, `referenceTaskIds`, `acceptedOutputModes`. */
export const LIST_ITEMS_MAX = 64;
/** Characters of an extension URI, a media type, a file name. */
export const NAME_CHARS_MAX = 1024;
/** Largest `historyLength`. */
export const HISTORY_LENGTH_MAX = 2_147_483_647;
/** Largest generation in a request: 15 digits, as in a cursor. */
export const GENERATION_MAX = 999_999_999_999_999;
/** Tasks on one page of a list ([A2A 1.0] ListTasksRequest.page_size). */
export const PAGE_SIZE_MAX = 100;
export const PAGE_SIZE_DEFAULT = 50;
/** Characters of a page token. Hopline's own tokens have fewer than 256. */
export const PAGE_TOKEN_CHARS_MAX = 512;
/** Text for which a list searches. */
export const LIST_TEXT_CHARS_MAX = 256;
/** Characters of the agent's name in a search for its tasks. The names of a cluster's agents have at most 32. */
export const LIST_AGENT_CHARS_MAX = 64;
/** Largest `minDurationMs` of a list: 365 days. */
export const LIST_DURATION_MS_MAX = 31_536_000_000;
/** Characters of a webhook's URL. */
export const PUSH_URL_CHARS_MAX = 2048;
/** Characters of a push configuration's id. */
export const PUSH_CONFIG_ID_CHARS_MAX = 128;
/**
 * Characters of the token, and of the credentials, of a push configuration: each becomes an HTTP header, and servers accept 8
 * KiB of headers.
 */
export const PUSH_SECRET_CHARS_MAX = 4096;
/** Characters of the name of an authentication scheme. */
export const PUSH_SCHEME_CHARS_MAX = 64;
/** Push configurations of one task: each receives every event. */
export const PUSH_CONFIGS_MAX = 16;
