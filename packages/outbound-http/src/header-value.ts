/**
 * The form of a configured header value: visible ASCII with inner blanks, which every HTTP client and server accepts (RFC 9110, 5.5). `fetch` refuses
 * other characters only when a request is made, and its error can look like that of a server.
 */
export const HEADER_VALUE = /^[!-~]([\t -~]*[!-~])?$/;

/** RFC 9110, 5.6.2. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The name of the first header that cannot be sent, because of its name or value; undefined if all can. A value may be empty. */
export function unsendableHeader(headers: Readonly<Record<string, string>>): string | undefined {
  return Object.keys(headers).find(
    name => !HEADER_NAME.test(name) || (headers[name] !== '' && !HEADER_VALUE.test(headers[name]!)),
  );
}
