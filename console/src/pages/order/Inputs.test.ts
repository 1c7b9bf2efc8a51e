import { expect, it } from 'vitest';
import { inputWords, lacks, type Input } from './Inputs';

const inputs: Input[] = [
  { name: 'name', about: '', field: { kind: 'text', empty: false }, required: true, sensitive: false },
  { name: 'wait', about: '', field: { kind: 'number', whole: true }, required: false, sensitive: false },
  { name: 'password', about: '', field: { kind: 'text', empty: false }, required: false, sensitive: true },
];

it('what is missing or does not fit is named', () => {
  expect(lacks(inputs, {})).toBe('name is missing.');
  expect(lacks(inputs, { name: 'ntp', wait: 'long' })).toContain('wait: a number');
  expect(lacks(inputs, { name: 'ntp', wait: '5' })).toBe('');
});

it('the command line has what was given, and asks for secrets', () => {
  expect(inputWords(inputs, { name: '', password: 'geheim' })).toEqual(['name=', '--ask', 'password']);
  expect(inputWords(inputs, { wait: '5', name: 'ntp' })).toEqual(['name=ntp', 'wait=5']);
});
