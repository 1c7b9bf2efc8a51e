import { expect, it } from 'vitest';
import { counted, folded, printed, sorted, summed } from './fold';

const ok = (node: string, data: unknown) => ({ node, state: 'ok', data });

it('the same answers are together, however their keys are ordered and whenever they come', () => {
  const first = folded(new Map(), [ok('b', { x: 1, y: 2 }), ok('a', { y: 2, x: 1 })]);
  const then = folded(first, [ok('c', { x: 1, y: 2 }), { node: 'd', state: 'offline', message: 'away' }]);
  expect(sorted(first.values()).map((g) => g.nodes)).toEqual([['a', 'b']]);
  expect(sorted(then.values()).map((g) => [g.state, g.nodes])).toEqual([
    ['ok', ['a', 'b', 'c']],
    ['offline', ['d']],
  ]);
  expect(counted(then.values())).toEqual({ ok: 3, offline: 1 });
});

it('sums are those of the command line', () => {
  const of = (sum: Parameters<typeof summed>[0]) =>
    summed(
      sum,
      folded(new Map(), [
        ...[
          ok('a', { n: 1, up: true, s: 'x' }),
          ok('b', { n: 3, up: false, s: 'x' }),
          ok('c', { n: 3, up: false, s: 'y' }),
        ],
        { node: 'd', state: 'aborted', data: { n: 100 } },
      ]).values(),
    );
  expect(of({ function: 'summary', field: 's' })).toEqual(['x = 2', 'y = 1']);
  expect(of({ function: 'summary', field: 's', format: '%s: %d' })).toEqual(['x: 2', 'y: 1']);
  expect(of({ function: 'boolean_summary', field: 'up', labels: { true: 'up', false: 'down' } })).toEqual([
    'down = 2',
    '  up = 1',
  ]);
  expect(of({ function: 'average', field: 'n' })).toEqual(['Average: 2.333']);
  expect(of({ function: 'sum', field: 'n', format: '%d in all' })).toEqual(['7 in all']);
  expect(of({ function: 'distribution', field: 'n' })).toEqual([`▄${' '.repeat(18)}█  min: 1  max: 3`]);
  expect(of({ function: 'sum', field: 'nothing' })).toEqual([]);
});

it('formats are printf’s', () => {
  expect(printed('%-6s|%5.1f|%03d|%%', 'ab', 2.5, 7)).toBe('ab    |  2.5|007|%');
});
