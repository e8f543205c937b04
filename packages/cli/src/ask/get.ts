import { besideJson, noticePrinter, StreamPrinter } from '@hopline/terminal';
import { command } from '../command/command.ts';
import { EXIT } from '../command/exit-code.ts';
import { TASK } from '../command/subjects.ts';
import { ANSWER, OUT } from './answer-options.ts';
import { outFolder } from './out-folder.ts';

export const get = command({
  name: 'get',
  subject: TASK,
  summary: 'prints the current answer of a task',
  details: '--json prints the whole task. Use follow for a task of more than 64 MiB of JSON',
  options: { out: OUT, answer: ANSWER },
  async run({ subject: taskId, options }, { client, output, json, signal }) {
    const folder = outFolder(options.out);
    const task = await client.get(taskId, { signal, onNotice: noticePrinter(output) });
    if (json) output.line(JSON.stringify(task));
    if (!json || folder !== undefined) {
      const printer = new StreamPrinter(json ? besideJson(output) : output, { folder, answerNames: options.answer });
      printer.printTask(task);
      // Prints the parts that still wait for others, which a working task may have.
      printer.end();
    }
    output.end();
    return folder?.failed ? EXIT.failed : EXIT.ok;
  },
});
