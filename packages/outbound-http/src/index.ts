export type { BoundedFetchOptions } from './bounded-fetch.ts';
export { boundedFetch, boundedResponse, ResponseTooLarge } from './bounded-fetch.ts';
export type { DeadlineLimits, MissedDeadline } from './deadlines.ts';
export { Deadlines } from './deadlines.ts';
export { HEADER_VALUE, unsendableHeader } from './header-value.ts';
export { REDIRECTS_MAX, sameOriginRedirect } from './same-origin-redirect.ts';
