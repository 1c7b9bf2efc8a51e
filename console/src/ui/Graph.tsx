import { useMergedRef, useResizeObserver } from '@mantine/hooks';
import { useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { wordOf } from './words';

/** A box of a drawing; places come from the server. */
export interface DrawnBox {
  name: string;
  state?: string;
  folded?: boolean;
  x: number;
  y: number;
  row: number;
}

export interface DrawnLine {
  from: string;
  to: string;
  kinds: string[] | null;
  back?: boolean;
  points: [number, number][] | null;
}

interface Props<B extends DrawnBox> {
  label: string;
  boxes: B[];
  lines: DrawnLine[];
  size: { width: number; height: number; boxWidth: number; boxHeight: number };
  chosen?: string;
  small?: boolean; // the whole picture at once
  onChoose: (box: B) => void;
  told: (box: B) => string; // what readers of screens hear of a box
  text: (box: B) => ReactNode;
}

const margin = 12;

/** A line as a path: straight through rows, curved between them. */
export function pathOf(points: [number, number][]): string {
  return points
    .map(([x, y], i) => {
      const before = points[i - 1];
      if (!before) return `M${x} ${y}`;
      if (before[0] === x) return `V${y}`;
      const middle = (before[1] + y) / 2;
      return `C${before[0]} ${middle} ${x} ${middle} ${x} ${y}`;
    })
    .join('');
}

/** The head of a line's arrow. */
export function headOf(line: DrawnLine): string {
  const [x, y] = line.points?.at(-1) ?? [0, 0];
  return line.back
    ? `M${x - 4} ${y + 8}L${x + 4} ${y + 8}L${x} ${y}Z`
    : `M${x - 4} ${y - 8}L${x + 4} ${y - 8}L${x} ${y}Z`;
}

/** The box that a key leads to: along the lines, or to a neighbour in the row. */
export function steps(key: string, from: string, boxes: DrawnBox[], lines: DrawnLine[]): string | undefined {
  const at = boxes.findIndex((b) => b.name === from);
  const here = boxes[at];
  if (!here) return undefined;
  const side = (i: number) => (boxes[i]?.row === here.row ? boxes[i].name : undefined);
  const nearest = (names: string[]) =>
    boxes
      .filter((b) => names.includes(b.name))
      .toSorted((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x))
      .at(0)?.name;
  switch (key) {
    case 'ArrowLeft':
      return side(at - 1);
    case 'ArrowRight':
      return side(at + 1);
    case 'ArrowDown':
      return (
        nearest(lines.filter((l) => l.from === from && !l.back).map((l) => l.to)) ??
        nearest(boxes.filter((b) => b.row === here.row + 1).map((b) => b.name))
      );
    case 'ArrowUp':
      return (
        nearest(lines.filter((l) => l.to === from && !l.back).map((l) => l.from)) ??
        nearest(boxes.filter((b) => b.row === here.row - 1).map((b) => b.name))
      );
    case 'Home':
      return boxes[0]?.name;
    case 'End':
      return boxes.at(-1)?.name;
  }
  return undefined;
}

/** A drawing of what waits for what. Tab comes to one box of it, arrows lead along its lines. */
export function Graph<B extends DrawnBox>(props: Props<B>) {
  const { boxes, lines, size } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState('');
  const near = pointed || props.chosen;
  const stop = boxes.some((b) => b.name === props.chosen) ? props.chosen : boxes[0]?.name;
  const width = size.width + 2 * margin;
  const height = size.height + 2 * margin;
  const [measured, { width: room }] = useResizeObserver<HTMLDivElement>();
  const seen = useMergedRef(frame, measured);
  const scale = props.small && room > 0 ? Math.min(1, room / width) : 1;
  const onKeyDown = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const from = (e.target as HTMLElement).dataset.box;
    const to = from && steps(e.key, from, boxes, lines);
    if (!to) return;
    e.preventDefault();
    const box = [...(frame.current?.querySelectorAll<HTMLElement>('[data-box]') ?? [])].find(
      (one) => one.dataset.box === to,
    );
    box?.focus();
    box?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  return (
    // The boxes within are buttons; keys move between them.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <div
      ref={seen}
      className="graph"
      // A drawing whose parts are buttons is no <fieldset>.
      // oxlint-disable-next-line jsx-a11y/prefer-tag-over-role
      role="group"
      aria-label={props.label}
      onKeyDown={onKeyDown}
    >
      <div style={{ width: width * scale, height: height * scale }}>
        <div className="graph-sheet" style={{ width, height, transform: scale < 1 ? `scale(${scale})` : undefined }}>
          <svg
            width={width}
            height={height}
            viewBox={`${-margin} ${-margin} ${width} ${height}`}
            aria-hidden
            focusable={false}
          >
            {lines
              .filter((l) => (l.points ?? []).length > 0)
              .toSorted((a, b) => Number(touches(a, near)) - Number(touches(b, near)))
              .map((l) => (
                <g
                  key={`${l.from} ${l.to}`}
                  className="graph-line"
                  data-near={touches(l, near)}
                  data-back={l.back}
                  data-dashed={(l.kinds ?? []).every((kind) => kind === 'contains' || kind === 'inside')}
                >
                  <path d={pathOf(l.points ?? [])} />
                  <path className="graph-head" d={headOf(l)} />
                </g>
              ))}
          </svg>
          {boxes.map((b) => (
            <button
              key={b.name}
              type="button"
              className="graph-box"
              data-box={b.name}
              data-tone={b.state ? wordOf(b.state).tone : undefined}
              data-folded={b.folded}
              data-chosen={b.name === props.chosen}
              tabIndex={b.name === stop ? 0 : -1}
              aria-label={props.told(b)}
              aria-pressed={b.name === props.chosen}
              style={{ left: b.x + margin, top: b.y + margin, width: size.boxWidth, height: size.boxHeight }}
              onClick={() => props.onChoose(b)}
              onFocus={() => setPointed(b.name)}
              onBlur={() => setPointed('')}
              onMouseEnter={() => setPointed(b.name)}
              onMouseLeave={() => setPointed('')}
            >
              {props.text(b)}
            </button>
          ))}
        </div>
      </div>
    </div>
  );
}

function touches(line: DrawnLine, name: string | undefined): boolean {
  return name !== undefined && (line.from === name || line.to === name);
}
