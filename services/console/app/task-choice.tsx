import type { Task } from '@hopline/a2a';
import { useEffect, useState } from 'preact/hooks';
import type { Connection } from './connection.ts';
import { endsWord } from './input-method.ts';
import { ageText, visibleText } from './plain-text.ts';
import { StatePill } from './state-pill.tsx';
import { rowOf, searchOf, type TaskRow } from './task-rows.ts';

/** Tasks that are offered; a longer text offers fewer. */
const OFFERED_TASKS = 8;
/** Rest time after which a typed text is searched. */
const TYPING_MS = 250;

type Props = { name: string; id: string; connection: Connection; onChoose: (id: string) => void };

/** A field that finds a task by its words and shows its question. The id of a task can be typed as well. */
export function TaskChoice({ name, id, connection, onChoose }: Props) {
  const [text, setText] = useState(id);
  const [isOpen, setOpen] = useState(false);
  const { rows, at, setAt } = useOffers(text, isOpen, connection);
  useEffect(() => {
    // A task that the address names is shown by its question.
    if (id === '') return;
    connection.json<Task>(`/api/tasks/${encodeURIComponent(id)}?historyLength=20`).then(
      task => setText(before => (before === id ? rowOf(task).question || id : before)),
      () => {},
    );
  }, []);
  const choose = (row: TaskRow) => {
    setText(row.question || row.id);
    onChoose(row.id);
    setOpen(false);
  };
  const onInput = (typed: string) => {
    setText(typed);
    setOpen(true);
    onChoose(searchOf(typed).server === '' ? typed.trim() : '');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (endsWord(event)) return;
    if (event.key === 'Escape') setOpen(false);
    if (!isOpen || rows.length === 0) return;
    if (event.key === 'ArrowDown') setAt((at + 1) % rows.length);
    else if (event.key === 'ArrowUp') setAt((at - 1 + rows.length) % rows.length);
    else if (event.key === 'Enter') choose(rows[at]!);
    else return;
    event.preventDefault();
  };
  const listId = `tasks-${name}`;
  const isShown = isOpen && rows.length > 0;
  return (
    <span class="task-choice">
      <input
        type="text"
        role="combobox"
        placeholder={`Task ${name}: words or id`}
        aria-label={`Task ${name}`}
        aria-expanded={isShown}
        aria-controls={isShown ? listId : undefined}
        aria-autocomplete="list"
        aria-activedescendant={isShown ? `${listId}-${at}` : undefined}
        autocomplete="off"
        value={visibleText(text)}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onInput={event => onInput(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      {isShown && <Offers label={`Tasks for ${name}`} id={listId} rows={rows} at={at} onChoose={choose} />}
    </span>
  );
}

/** The newest tasks that have the typed words, and the place of the one that Enter chooses. */
function useOffers(text: string, isOpen: boolean, connection: Connection) {
  const [rows, setRows] = useState<readonly TaskRow[]>([]);
  const [at, setAt] = useState(0);
  useEffect(() => {
    if (!isOpen) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      const query = new URLSearchParams({ pageSize: String(OFFERED_TASKS), historyLength: '1' });
      const { server } = searchOf(text);
      if (server !== '') query.set('text', server);
      connection.json<{ tasks: Task[] }>(`/api/tasks?${query}`).then(
        ({ tasks }) => {
          if (!isCurrent) return;
          setRows(tasks.map(task => rowOf(task)));
          setAt(0);
        },
        // Without offers, an id can still be typed.
        () => {},
      );
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text, isOpen]);
  return { rows, at, setAt };
}

type OffersProps = { label: string; id: string; rows: readonly TaskRow[]; at: number; onChoose: (row: TaskRow) => void };

function Offers({ label, id, rows, at, onChoose }: OffersProps) {
  return (
    <div class="task-choice-list" role="listbox" id={id} aria-label={label}>
      {rows.map((row, index) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field has the focus and the keys.
        <div
          key={row.id}
          id={`${id}-${index}`}
          class="task-choice-one"
          role="option"
          aria-selected={index === at}
          onPointerDown={event => event.preventDefault()}
          onClick={() => onChoose(row)}
        >
          <bdi>{row.question === '' ? visibleText(row.id) : row.question}</bdi>
          <StatePill state={row.state} />
          <span class="muted small">{ageText(row.at, Date.now())}</span>
        </div>
      ))}
    </div>
  );
}
