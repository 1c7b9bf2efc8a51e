import { expect, it } from 'vitest';
import { givenIn, withGiven } from './form';
import type { Input } from './Inputs';
import { chosenIn } from './targets';

const input = (name: string, sensitive = false): Input => ({
  name,
  about: '',
  field: { kind: 'text', empty: true },
  required: false,
  sensitive,
});
const inputs = [input('name'), input('note'), input('password', true), input('other')];

it('what is given goes into the address and back, and no secret does', () => {
  const given = { name: 'ntp', note: '', password: 'geheim' };
  const form = withGiven(given, inputs);
  expect(JSON.stringify(form)).not.toContain('geheim');
  expect(givenIn(form, inputs)).toEqual({ name: 'ntp', note: '' });
});

it('an address names nodes in one way', () => {
  expect(chosenIn({ where: 'certname = "a"' })).toMatchObject({
    targets: { query: 'certname = "a"' },
    words: ['--where', 'certname = "a"'],
    some: true,
  });
  expect(chosenIn({ by: 'nodes', nodes: 'a, b', exclude: 'c' })).toMatchObject({
    targets: { nodes: ['a', 'b'], exclude: ['c'] },
    words: ['--targets', 'a,b', '--exclude', 'c'],
  });
  expect(chosenIn({ by: 'all' }).words).toEqual(['--all']);
  expect(chosenIn({ group: 'Web' }).words).toEqual(['--group', 'Web']);
  expect(chosenIn({ by: 'query', query: 'nodes[certname]{}' }).words).toEqual(['--query', 'nodes[certname]{}']);
  expect(chosenIn({}).some).toBe(false);
});
