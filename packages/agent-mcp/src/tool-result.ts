import { randomUUID } from 'node:crypto';
import type { Part } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/sdk/types.js';

/**
 * What a tool returned, in its order: text as tokens of the answer, one per content item and unchanged; everything else as an artifact each.
 * Structured content repeats the content (MCP 2025-06-18, server/tools): it counts only when there is nothing else.
 */
export function* resultEvents(tool: string, result: CallToolResult): Generator<AgentEvent> {
  for (const block of result.content) {
    if (block.type === 'text') {
      if (block.text !== '') yield { type: 'text', text: block.text };
      continue;
    }
    yield artifact(tool, filePart(block));
  }
  const alone = result.content.length === 0 && result.structuredContent !== undefined;
  if (alone) yield artifact(tool, { data: result.structuredContent, mediaType: 'application/json' });
}

/** The text of an error a tool returned: for the user, never for the log. */
export function errorText(result: CallToolResult): string {
  return result.content.map(block => (block.type === 'text' ? block.text : '')).join('');
}

function artifact(name: string, part: Part): AgentEvent {
  return { type: 'artifact', artifact: { artifactId: randomUUID(), name, parts: [part] }, append: false, lastChunk: true };
}

function filePart(block: Exclude<ContentBlock, { type: 'text' }>): Part {
  switch (block.type) {
    case 'image':
    case 'audio':
      return { raw: block.data, mediaType: block.mimeType };
    case 'resource_link':
      return { url: block.uri, filename: block.name, ...(block.mimeType !== undefined && { mediaType: block.mimeType }) };
    case 'resource': {
      const { resource } = block;
      // Also a text resource is a file: as a text part it would be taken for the answer.
      const raw = 'blob' in resource ? resource.blob : Buffer.from(resource.text, 'utf8').toString('base64');
      return { raw, filename: resource.uri, ...(resource.mimeType !== undefined && { mediaType: resource.mimeType }) };
    }
  }
}
