import type { Screen } from './screen.ts';

type Part = { kind?: string; text?: string };
type Artifact = { artifactId: string; name?: string; description?: string; parts?: Part[] };
/** The events of the 0.3 dialect, as far as they are printed. */
export type StreamEvent =
  | { kind: 'task'; id: string; status?: { state?: string } }
  | { kind: 'artifact-update'; artifact: Artifact; append?: boolean }
  | { kind: 'status-update'; status: { state: string; message?: { parts?: Part[] } }; final?: boolean }
  | { kind: string };

/** Prints one task's stream: a heading where another artifact goes on, its text as it comes, states as asides. */
export class StreamPrinter {
  readonly #screen: Screen;
  /** Folded text by artifact id; a client does exactly this. */
  readonly #texts = new Map<string, string>();
  #current = '';
  taskId: string | null = null;
  ended = false;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  print(event: StreamEvent): void {
    if (isTask(event)) {
      this.taskId = event.id;
      this.#screen.aside(`task ${event.id}: ${event.status?.state ?? 'submitted'}`);
    } else if (isArtifact(event)) this.#artifact(event.artifact, event.append === true);
    else if (isStatus(event)) this.#status(event);
  }

  #artifact(artifact: Artifact, append: boolean): void {
    const id = artifact.artifactId;
    const heading = `── ${artifact.name ?? id}${artifact.description ? ` · ${artifact.description}` : ''}`;
    const text = textOf(artifact.parts);
    const isRepeat = !append && this.#repeats(text);
    this.#texts.set(id, append ? (this.#texts.get(id) ?? '') + text : text);
    if (text === '') return;
    // By name too: the last word on an artifact can come under another name.
    const place = `${id} ${artifact.name}`;
    if (this.#current !== place) {
      this.#current = place;
      this.#screen.heading(heading);
    }
    if (isRepeat) this.#screen.aside(`(${text.length} characters, equal to the text streamed above)`);
    else this.#screen.text(text);
  }

  /** A whole text that was streamed before, alone or as the sum of the streamed answers: the end of a stream repeats it. */
  #repeats(text: string): boolean {
    if (text.trim() === '') return false;
    const texts = [...this.#texts.values()];
    return texts.includes(text) || sumsUp(text, texts);
  }

  #status({ status, final }: Extract<StreamEvent, { kind: 'status-update' }>): void {
    const text = textOf(status.message?.parts);
    this.#current = '';
    this.#screen.aside(`task ${status.state}${text === '' || this.#repeats(text) ? '' : `: ${text.trim()}`}`);
    if (final) this.ended = true;
  }
}

/** Whether `whole` holds nothing but some of `texts`, in their order, and white space. */
function sumsUp(whole: string, texts: string[]): boolean {
  let rest = whole.trim();
  for (const text of texts) {
    const piece = text.trim();
    if (piece !== '' && rest.startsWith(piece)) rest = rest.slice(piece.length).trim();
  }
  return rest === '';
}

function textOf(parts: Part[] | undefined): string {
  return (parts ?? []).map(part => part.text ?? '').join('');
}

function isTask(event: StreamEvent): event is Extract<StreamEvent, { kind: 'task' }> {
  return event.kind === 'task';
}

function isArtifact(event: StreamEvent): event is Extract<StreamEvent, { kind: 'artifact-update' }> {
  return event.kind === 'artifact-update';
}

function isStatus(event: StreamEvent): event is Extract<StreamEvent, { kind: 'status-update' }> {
  return event.kind === 'status-update';
}
