import { expect, test } from 'vitest';
import { headOf, pathOf, steps } from './Graph';

test('a line is straight through rows, and curved between them', () => {
  expect(
    pathOf([
      [10, 0],
      [10, 40],
      [30, 80],
    ]),
  ).toBe('M10 0V40C10 60 30 60 30 80');
});

test('the arrow of a line that closes a circle points up', () => {
  const line = { from: 'a', to: 'b', kinds: [], points: [[5, 50]] as [number, number][] };
  expect(headOf(line)).toContain('42');
  expect(headOf({ ...line, back: true })).toContain('58');
});

test('keys lead along lines, and to neighbours in the row', () => {
  const boxes = [
    { name: 'a', x: 0, y: 0, row: 0 },
    { name: 'b', x: 0, y: 90, row: 1 },
    { name: 'c', x: 90, y: 90, row: 1 },
  ];
  const lines = [{ from: 'a', to: 'c', kinds: [], points: null }];
  expect(steps('ArrowDown', 'a', boxes, lines)).toBe('c');
  expect(steps('ArrowUp', 'c', boxes, lines)).toBe('a');
  expect(steps('ArrowLeft', 'c', boxes, lines)).toBe('b');
  expect(steps('ArrowRight', 'c', boxes, lines)).toBeUndefined();
  expect(steps('ArrowUp', 'b', boxes, lines)).toBe('a'); // no line leads there: the row above does
  expect(steps('End', 'a', boxes, lines)).toBe('c');
});
