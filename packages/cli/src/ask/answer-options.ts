import { flag, text, texts } from '../command/options.ts';

/** Options of the commands that ask a question. */
export const AGENT = text('NAME', 'the agent to ask, see `hopline agents`; default: chosen by the skills of the agents');
export const CONTEXT = text('ID', 'continues a conversation');
/** A command line may name its conversation in only one of three ways: by its id, as the last one, or by one of its tasks. */
export const CONTINUE = flag('continues the last conversation with this server, with the same agent', {
  excludes: { options: ['context', 'task'] },
});

/** Options of the commands that print an answer. */
export const OUT = text('DIR', 'saves the files and data of the answer in this folder; never replaces a file', 'files');
export const ANSWER = texts(
  'NAME',
  "also prints artifacts of this name as the answer; for servers without Hopline's artifact names",
);
