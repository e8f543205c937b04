import { AbstractChat, type ChatInit, type ChatState, type ChatStatus, type UIMessage } from 'ai';

/** The state of a chat without a framework. */
class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined;
  messages: UIMessage[];

  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }

  pushMessage = (message: UIMessage) => {
    this.messages = [...this.messages, message];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: UIMessage) => {
    this.messages = this.messages.with(index, structuredClone(message));
  };
  snapshot = <T>(thing: T): T => structuredClone(thing);
}

/** The AI SDK's chat, as its packages for React, Vue and Svelte make it, without a page. */
export class HeadlessChat extends AbstractChat<UIMessage> {
  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    super({ ...init, state: new PlainState(structuredClone(messages)) });
  }
}

/** The text of an assistant message, as a page shows it. */
export function textOf(message: UIMessage | undefined): string {
  return (message?.parts ?? []).map(part => (part.type === 'text' ? part.text : '')).join('');
}
