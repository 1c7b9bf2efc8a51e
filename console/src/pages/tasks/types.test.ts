import { expect, it } from 'vitest';
import { fieldOf, misfit, split } from './types';

it('types are taken apart, also with brackets, commas and quotes in them', () => {
  expect(split('Variant[Enum[\'a, b\', "c]"], Integer[1, 10]]')).toEqual({
    name: 'Variant',
    args: ['Enum[\'a, b\', "c]"]', 'Integer[1, 10]'],
  });
  expect(split('Pattern[/^[a-z],$/]').args).toEqual(['/^[a-z],$/']);
  expect(split('Boolean')).toEqual({ name: 'Boolean', args: [] });
});

it.each([
  ["Enum['start', 'stop']", { kind: 'choice', values: ['start', 'stop'] }],
  ["Optional[Enum[start, 'it\\'s']]", { kind: 'choice', values: ['start', "it's"] }],
  ["Variant[Enum['a'], Enum['b']]", { kind: 'choice', values: ['a', 'b'] }],
  ['Optional[Boolean]', { kind: 'boolean' }],
  ['Integer[1, 10]', { kind: 'number', least: 1, most: 10, whole: true }],
  ['Integer[default, 5]', { kind: 'number', least: undefined, most: 5, whole: true }],
  ['Variant[Integer, Float]', { kind: 'number', whole: false }],
  ['Hash[String, Data]', { kind: 'json' }],
  ['Variant[Array[String], Hash]', { kind: 'json' }],
  ['Variant[Integer, String[1]]', { kind: 'text', empty: false }],
  ['String', { kind: 'text', empty: true }],
  ['String[1]', { kind: 'text', empty: false }],
  ['Sensitive[String[8]]', { kind: 'text', empty: false }],
  ['Stdlib::Absolutepath', { kind: 'text', empty: true }],
  ['Data', { kind: 'text', empty: true }],
])('%s', (type, field) => expect(fieldOf(type)).toEqual(field));

it('what cannot fit is said while it is typed', () => {
  const small = fieldOf('Integer[1, 10]');
  expect(['1', '10', '0', '11', '1.5', 'x', ''].map((text) => misfit(small, text) === '')).toEqual([
    ...[true, true],
    ...[false, false, false, false, false],
  ]);
  expect(misfit(fieldOf('Array'), '[1')).toContain('JSON');
  expect(misfit(fieldOf('Array'), '[1]')).toBe('');
  expect(misfit(fieldOf('String'), '')).toBe('');
});
