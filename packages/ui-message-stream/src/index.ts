export { UI_STREAM_HEADER, UI_STREAM_VERSION } from './encode-chunks.ts';
export { CHAT_TASKS_MAX, type ShownTurn, TurnEncoder, turnToResume } from './turn-encoder.ts';
export type { UiChunk } from './ui-chunk.ts';
export { ChatMessageError, type UiChatRequest, uiChatRequestOf } from './user-message.ts';
