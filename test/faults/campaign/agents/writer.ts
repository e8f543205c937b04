import { scriptedAgent } from '../../../support/agents/scripted-agent.ts';
import { RUNS_FOLDER, RunFile } from './run-file.ts';

/** A module agent: each sub-agent process of it records its own runs. */
export default scriptedAgent('writer', new RunFile(process.env[RUNS_FOLDER] ?? '.'));
