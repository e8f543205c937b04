/** A command that reads the stream of a task from its beginning. The credentials of the page are never part of it. */
export function curlOf(origin: string, path: string, needsCredentials: boolean): string {
  const headers = ['a2a-version: 1.0', 'accept: text/event-stream', 'last-event-id: 0.0'];
  const all = headers.map(header => `-H '${header}'`);
  if (needsCredentials) all.push('-H "authorization: Bearer $TOKEN"');
  return `curl -N ${all.join(' ')} '${new URL(`${path}:subscribe`, origin).href}'`;
}
