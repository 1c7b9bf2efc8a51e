import { expect, test } from 'vitest';
import type { PreviewChange } from '../../api/client';
import { kindsOf, subjectOf } from './kinds';

const change = (key: string, nodes: number, more: Partial<PreviewChange> = {}): PreviewChange => ({
  change: 'changed',
  type: 'File',
  title: '/etc/motd',
  parameters: ['content'],
  examples: null,
  key,
  nodes,
  ...more,
});

test('changes that differ in values only are one, with all their nodes', () => {
  const kinds = kindsOf([change('a', 3), change('b', 2, { title: '/etc/hosts' }), change('c', 1)]);
  expect(kinds.map((k) => [k.keys, k.nodes])).toEqual([
    [['a', 'c'], 4],
    [['b'], 2],
  ]);
});

test('an order-only change is another one than a change of the same parameter', () => {
  expect(kindsOf([change('a', 1), change('b', 1, { order_only: true })])).toHaveLength(2);
});

test('a change is named by its resource, an error by its message', () => {
  expect(subjectOf(change('a', 1))).toBe('File[/etc/motd] content');
  expect(subjectOf(change('a', 1, { exported: true, parameters: [] }))).toBe('@@File[/etc/motd]');
  expect(subjectOf(change('a', 1, { change: 'error', message: 'no such class' }))).toBe('no such class');
});
