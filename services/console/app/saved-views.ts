/** The filters of the list of tasks. */
type ListFilters = { state: string; agent: string; time: string; longer: string; text: string };
/** Filters under a name. */
type View = { name: string; filters: ListFilters };

/** Number of views that this browser keeps, in addition to those that every page has. */
const STORAGE_KEY = 'hopline.views';
export const SAVED_VIEWS_MAX = 50;

const ALL: ListFilters = { state: '', agent: '', time: '', longer: '', text: '' };
export const COMMON_VIEWS: readonly View[] = [
  { name: 'All tasks', filters: ALL },
  { name: 'Failed today', filters: { ...ALL, state: 'failed', time: '1d' } },
  { name: 'Waiting for an answer', filters: { ...ALL, state: 'input-required' } },
  { name: 'Slower than 10 seconds', filters: { ...ALL, longer: '10s' } },
];

/** Reading the storage of a page may already be forbidden. */
type ViewStorage = () => Pick<Storage, 'getItem' | 'setItem'>;

/** The views that were saved here. Content that this version does not understand is left out. */
export function savedViews(storage: ViewStorage): View[] {
  try {
    const stored: unknown = JSON.parse(storage().getItem(STORAGE_KEY) ?? '[]');
    return Array.isArray(stored) ? stored.filter(isView) : [];
  } catch {
    // A browser may forbid a page to store anything.
    return [];
  }
}

function isView(value: unknown): value is View {
  const { name, filters } = (value ?? {}) as Partial<View>;
  return typeof name === 'string' && Object.keys(ALL).every(key => typeof filters?.[key as keyof ListFilters] === 'string');
}

/** Saves filters under a name. Replaces a view of the same name and, beyond the limit, the oldest one. Returns all saved views. */
export function saveView(storage: ViewStorage, view: View): View[] {
  const others = savedViews(storage).filter(({ name }) => name !== view.name);
  return stored(storage, [...others, view].slice(-SAVED_VIEWS_MAX));
}

export function removeView(storage: ViewStorage, name: string): View[] {
  return stored(
    storage,
    savedViews(storage).filter(one => one.name !== name),
  );
}

function stored(storage: ViewStorage, views: View[]): View[] {
  try {
    storage().setItem(STORAGE_KEY, JSON.stringify(views));
  } catch {
    // They last until the page is closed.
  }
  return views;
}
