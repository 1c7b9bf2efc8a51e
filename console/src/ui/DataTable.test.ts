import { expect, test } from 'vitest';
import { fitting } from './DataTable';

const columns = [
  { key: 'name', width: 'minmax(150px, 2fr)' },
  { key: 'state', width: '100px', from: 600 },
  { key: 'by', width: '100px', from: 900 },
  { key: 'at', width: '100px', from: 600 },
];
const shown = (width: number) => fitting(columns, width, 10).map((c) => c.key);

test('columns that have no room are left out, those of wide windows first', () => {
  expect(shown(1000)).toEqual(['name', 'state', 'by', 'at']);
  expect(shown(400)).toEqual(['name', 'state', 'at']);
  expect(shown(300)).toEqual(['name', 'state']);
  expect(shown(100)).toEqual(['name']);
});

test('nothing is left out before the list is measured', () => {
  expect(shown(0)).toHaveLength(4);
});
