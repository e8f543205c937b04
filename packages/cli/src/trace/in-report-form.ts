import { A2AError } from '@hopline/a2a';

/** Runs `read` on JSON of a server, which may have any form. Throws INVALID_AGENT_RESPONSE if the form is not that of an audit. */
export function inReportForm<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new A2AError('INVALID_AGENT_RESPONSE', { detail: 'the audit has an unknown form', retryable: false, cause });
  }
}
