import type { Message } from '@hopline/a2a';
import type { AgentInput, Fact, LaneArtifact, Producer, ProfileName, Role, TaskAggregate } from '@hopline/events';
import type { Command, RejectionReason } from './commands.ts';
import { decide } from './decide.ts';
import { evolve } from './evolve.ts';
import { project, type TaskView } from './project.ts';

/** For tests: a task and the commands it receives. Every command is decided at the next tick of the scenario's own clock. */
export class Scenario {
  aggregate: TaskAggregate | undefined;
  view: TaskView | undefined;
  readonly facts: Fact[] = [];
  readonly rejected: RejectionReason[] = [];
  #at = 1_000;

  when(command: Command): this {
    this.#at += 10;
    const decision = decide(this.aggregate, command, this.#at);
    if (decision.rejected !== undefined) this.rejected.push(decision.rejected);
    for (const fact of decision.facts) {
      this.facts.push(fact);
      this.aggregate = evolve(this.aggregate, fact);
      this.view = project(this.view, fact);
    }
    return this;
  }

  message(text: string, messageId = 'm1', role: Role = 'supervisor', profile: ProfileName = 'caipe'): this {
    const message: Message = { messageId, role: 'ROLE_USER', parts: [{ text }] };
    return this.when({ kind: 'client', taskId: 't1', input: { kind: 'message', message, contextId: 'c1', role, profile } });
  }

  cancel(): this {
    return this.when({ kind: 'client', taskId: 't1', input: { kind: 'cancel' } });
  }

  input(from: Producer, input: Exclude<AgentInput, { kind: 'text' }>): this {
    return this.when({ kind: 'agent', from, input });
  }

  open(from: Producer, lane: string, artifact: LaneArtifact = { name: 'answer' }): this {
    return this.input(from, { kind: 'open', lane, artifact });
  }

  text(from: Producer, lane: string, text: string, last = false): this {
    const chunk = { firstSeq: 1, lastSeq: 1, count: 1, n: 1, reason: 'ready', heldMs: 0, firstAt: 0, lastAt: 0 };
    return this.when({ kind: 'run', from, lane, text, last, n: 1, chunk });
  }

  /** The visible facts: a state, or `=` (opens or replaces) or `+` (appends) with the text of a chunk, and `.` for lastChunk. */
  events(): string[] {
    return this.facts.flatMap(fact => {
      if (fact.kind === 'task.created') return ['task'];
      if (fact.kind === 'status.changed') return [fact.event.statusUpdate.status.state.replace('TASK_STATE_', '').toLowerCase()];
      if (fact.kind !== 'artifact.updated') return [];
      const { append, lastChunk, artifact } = fact.event.artifactUpdate;
      return [`${append ? '+' : '='}${artifact.parts.map(part => part.text).join('')}${lastChunk ? '.' : ''}`];
    });
  }
}

export const supervisor = (attempt = 1, turn = 1): Producer => ({ id: 'supervisor', agent: 'supervisor', turn, attempt });
export const agent = (call = 'call-1-1', attempt = 1, turn = 1): Producer => ({ id: call, agent: 'argocd', turn, attempt });
