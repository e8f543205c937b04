export type { ChatMessage, ChatStoreOptions, TaskStoreOptions, TaskStoreValue } from '@hopline/client/tasks';
export { type HoplineChat, useHoplineChat } from './use-hopline-chat.ts';
export { useTask, type WatchedTask } from './use-task.ts';
