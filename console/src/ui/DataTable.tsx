import { useMediaQuery, useMergedRef, useResizeObserver } from '@mantine/hooks';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { many } from './words';

export interface Column<T> {
  key: string;
  title: string;
  width: string; // of CSS grids
  cell: (row: T) => ReactNode;
  order?: string; // what the server calls this order
  end?: boolean; // numbers line up at the end
  from?: 600 | 900 | 1200; // the narrowest window, in pixels, that shows it
}

interface Props<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  total?: number;
  old?: boolean; // they are what was there before: others are asked for
  whole?: boolean; // there are no more rows than these
  more?: () => void;
  order?: string;
  onOrder?: (order: string) => void;
  onOpen?: (row: T) => void;
  empty?: ReactNode;
}

const rowHeight = 38;

/** The narrowest that a column may be. */
function least(width: string): number {
  return Number(/(\d+)px/.exec(width)?.[1] ?? 0);
}

/** Leaves columns out until the others have room: first those that only wide windows show. Nothing is cut off. */
export function fitting<C extends { width: string; from?: number }>(columns: C[], width: number, gap: number): C[] {
  const left = [...columns];
  if (width === 0) return left; // it is not measured yet
  const needs = () => left.reduce((sum, c) => sum + least(c.width) + gap, gap + 8);
  while (needs() > width) {
    const widest = Math.max(...left.map((c) => c.from ?? 0));
    if (widest === 0) break;
    left.splice(
      left.findLastIndex((c) => c.from === widest),
      1,
    );
  }
  return left;
}

/** A list of any length: only the rows that are seen are drawn, and the next ones are fetched when they come near. */
export function DataTable<T>(props: Props<T>) {
  const scroll = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(-1);
  const widest = useMediaQuery('(min-width: 1200px)', window.innerWidth >= 1200);
  const wide = useMediaQuery('(min-width: 900px)', window.innerWidth >= 900);
  const middle = useMediaQuery('(min-width: 600px)', window.innerWidth >= 600);
  const room = widest ? 1200 : wide ? 900 : middle ? 600 : 0;
  const [measured, { width }] = useResizeObserver<HTMLDivElement>();
  const frame = useMergedRef(scroll, measured);
  const columns = fitting(
    props.columns.filter((c) => (c.from ?? 0) <= room),
    width,
    room === 0 ? 8 : 14,
  );
  // React's compiler is not used.
  // oxlint-disable-next-line react/incompatible-library
  const virtual = useVirtualizer({
    count: props.rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin: 0,
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const { more, whole, rows } = props;
  useEffect(() => {
    if (!whole && more && last >= rows.length - 40) more();
  }, [last, whole, more, rows.length]);

  const move = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setActive(next);
    virtual.scrollToIndex(next);
  };
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== e.currentTarget) return;
    if (e.key === 'j' || e.key === 'ArrowDown') move(active + 1);
    else if (e.key === 'k' || e.key === 'ArrowUp') move(active - 1);
    else if (e.key === 'Enter' && rows[active] && props.onOpen) props.onOpen(rows[active]);
    else return;
    e.preventDefault();
  };
  const template = { gridTemplateColumns: columns.map((c) => c.width).join(' ') };
  const counted = props.total ?? (whole && !props.old ? rows.length : -1);
  return (
    // A list that can be moved in by keys has listeners, as a listbox has.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={frame}
      className="grid"
      role="table"
      aria-label={`${props.label}${counted >= 0 ? `, ${many(counted, 'row')}` : ''}. j and k move, Enter opens.`}
      aria-busy={props.old}
      aria-rowcount={counted >= 0 ? counted + 1 : -1}
      // A region that scrolls must be reachable by keyboard.
      // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div role="rowgroup">
        <div role="row" className="grid-head" style={template} aria-rowindex={1}>
          {columns.map((c) => {
            const down = props.order === `-${c.order}`;
            const up = c.order !== undefined && props.order === c.order;
            return (
              <div
                key={c.key}
                role="columnheader"
                className="cell"
                data-end={c.end}
                aria-sort={up ? 'ascending' : down ? 'descending' : c.order ? 'none' : undefined}
              >
                {c.order && props.onOrder ? (
                  <button className="sort" type="button" onClick={() => props.onOrder?.(up ? `-${c.order}` : c.order!)}>
                    {c.title}
                    <span aria-hidden>{up ? ' ↑' : down ? ' ↓' : ' ↕'}</span>
                  </button>
                ) : (
                  c.title
                )}
              </div>
            );
          })}
        </div>
      </div>
      {rows.length === 0 && (
        <div role="rowgroup">
          <div role="row">
            <div role="cell">{props.empty}</div>
          </div>
        </div>
      )}
      <div role="rowgroup" style={{ height: virtual.getTotalSize(), position: 'relative' }}>
        {items.map((item) => {
          const row = rows[item.index]!;
          return (
            <div
              key={props.rowKey(row)}
              role="row"
              className="grid-row"
              aria-rowindex={item.index + 2}
              data-active={item.index === active}
              style={{ ...template, transform: `translateY(${item.start}px)` }}
            >
              {columns.map((c) => (
                <div key={c.key} role="cell" className="cell" data-end={c.end}>
                  {c.cell(row)}
                </div>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
