/** How much of a conversation is read. What is newer wins. */
export type ContextHistoryLimits = {
  /** Earlier tasks that are looked up. Two requests to the log each. */
  tasksMax: number;
  messagesMax: number;
  /** UTF-16 units of the messages' parts as JSON, files included. */
  charactersMax: number;
};

export const CONTEXT_HISTORY_LIMITS: ContextHistoryLimits = { tasksMax: 10, messagesMax: 100, charactersMax: 128 * 1024 };
