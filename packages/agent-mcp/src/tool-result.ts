import { randomUUID } from 'node:crypto';
import type { Part } from '@hopline/a2a';
import type { AgentEvent } from '@hopline/agent';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/client';

/**
 * Converts the result of a tool, in order: text items to unchanged text of the answer, every other item to an artifact.
 * Structured content repeats the content (MCP 2025-06-18, server/tools), so it is used only when there is no other content.
 */
export function* resultEvents(tool: string, result: CallToolResult): Generator<AgentEvent> {
  for (const block of result.content) {
    if (block.type === 'text') {
      if (block.text !== '') yield { type: 'text', text: block.text };
      continue;
    }
    yield artifact(tool, filePart(block));
  }
  const isOnlyStructured = result.content.length === 0 && result.structuredContent !== undefined;
  if (isOnlyStructured) yield artifact(tool, { data: result.structuredContent, mediaType: 'application/json' });
}

/** The result in the form of the call's notice: structured content, or the texts. Files are only artifacts; the notice has their types. */
export function shownResult({ content, structuredContent }: CallToolResult): unknown {
  if (structuredContent !== undefined) return structuredContent;
  return content.map(block => (block.type === 'text' ? block.text : `[${filePart(block).mediaType ?? 'a file'}]`)).join('');
}

/** Returns the text of a tool error, which is content: shown to the user, never logged. */
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
      // A text resource also becomes a file, because a text part would read as part of the answer.
      const raw = 'blob' in resource ? resource.blob : Buffer.from(resource.text, 'utf8').toString('base64');
      return { raw, filename: resource.uri, ...(resource.mimeType !== undefined && { mediaType: resource.mimeType }) };
    }
  }
}
