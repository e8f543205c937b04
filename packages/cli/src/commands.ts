import { agents } from './ask/agents.ts';
import { ask } from './ask/ask.ts';
import { cancel } from './ask/cancel.ts';
import { card } from './ask/card.ts';
import { chat } from './ask/chat.ts';
import { follow } from './ask/follow.ts';
import { get } from './ask/get.ts';
import { tasks } from './ask/tasks.ts';
import { agent } from './author/agent.ts';
import { newAgent } from './author/new-agent.ts';
import type { Command } from './command/command.ts';
import { completion } from './command/completion.ts';
import { backup } from './operate/backup.ts';
import { dev } from './operate/dev.ts';
import { erase } from './operate/erase.ts';
import { layout } from './operate/layout.ts';
import { logs } from './operate/logs.ts';
import { restore } from './operate/restore.ts';
import { status } from './operate/status.ts';
import { top } from './operate/top.ts';
import { diff } from './tasks/diff.ts';
import { exportTasks } from './tasks/export-tasks.ts';
import { fork } from './tasks/fork.ts';
import { importFile } from './tasks/import-file.ts';
import { replay } from './tasks/replay.ts';
import { rerun } from './tasks/rerun.ts';
import { serve } from './tasks/serve.ts';
import { verify } from './tasks/verify.ts';
import { view } from './tasks/view.ts';
import { whatIf } from './tasks/what-if.ts';
import { trace } from './trace/trace.ts';
import { why } from './trace/why.ts';

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  ask,
  chat,
  follow,
  tasks,
  get,
  cancel,
  trace,
  exportTasks,
  importFile,
  replay,
  serve,
  view,
  why,
  verify,
  whatIf,
  diff,
  rerun,
  fork,
  agents,
  top,
  card,
  dev,
  status,
  logs,
  backup,
  restore,
  layout,
  erase,
  agent,
  newAgent,
  completion,
];
