/** The socket at which the container of the code starts MCP servers, beside that of hosts. */
export function serverSocketOf(hostSocket: string): string {
  return `${hostSocket}.mcp`;
}
