import type { NoticeTemplate, NoticeTemplates } from '@hopline/events';

export const WAITING: NoticeTemplate = {
  name: 'tool_notification_end',
  description: 'Tool call waiting: {tool}',
  text: '⏸️ {agent}: Tool {tool} is waiting\n',
};

/** Notices of an agent's tool calls, the same in all three profiles (S2-1, S2-37). */
export const TOOL_NOTICES: NoticeTemplates = {
  start: {
    name: 'tool_notification_start',
    description: 'Tool call started: {tool}',
    text: '🔧 {agent}: Calling tool: {tool}\n',
  },
  end: {
    name: 'tool_notification_end',
    description: 'Tool call completed: {tool}',
    text: '✅ {agent}: Tool {tool} completed\n',
  },
  failed: {
    name: 'tool_notification_end',
    description: 'Tool call failed: {tool}',
    text: '❌ {agent}: Tool {tool} failed\n',
  },
  waiting: WAITING,
};
