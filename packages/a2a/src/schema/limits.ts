/** Bounds of what a client may send in one request; the body's bytes are bounded before this. */

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
/** Tasks on one page of a list ([A2A 1.0] ListTasksRequest.page_size). */
export const PAGE_SIZE_MAX = 100;
export const PAGE_SIZE_DEFAULT = 50;
/** Characters of a page token. Ours have less than 256. */
export const PAGE_TOKEN_CHARS_MAX = 512;
