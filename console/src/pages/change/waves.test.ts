import { expect, test } from 'vitest';
import { atOnce, flagsOf, isWhole, named, optionsOf } from './waves';

test('the form asks the API and the command line for the same', () => {
  const going = {
    ...atOnce,
    waves: '1%, @canary rest',
    failures: '2',
    promote: '30',
    noop: true,
    wait: true,
    approve: 'lead',
  };
  expect(optionsOf(going)).toMatchObject({
    waves: ['1%', '@canary', 'rest'],
    max_failures: 2,
    promote: 'soak',
    soak: 1800,
    noop_first: true,
    wait_offline: 1800,
    approve_by: 'lead',
  });
  expect(flagsOf(going).join(' ')).toBe(
    '--wave 1% --wave @canary --wave rest --max-failures 2 --soak 30m --noop-first --wait-offline 30m --approve-by lead',
  );
});

test('no failure is borne unless one says so, and no bound is said', () => {
  expect(optionsOf(atOnce).max_failures).toBe(0);
  expect(flagsOf(atOnce)).toEqual([]);
  expect(optionsOf({ ...atOnce, failures: '' }).max_failures).toBeUndefined();
  expect(flagsOf({ ...atOnce, failures: '' })).toEqual(['--max-failures', 'none']);
  expect(isWhole({ ...atOnce, failures: 'many' })).toBe(false);
});

test('the nodes of a small wave are named, and the first of one that is drawn', () => {
  const wave = (size: string, nodes: number) => ({
    number: 1,
    size,
    nodes,
    round: 1,
    state: 'waiting',
    first: ['a', 'b', 'c', 'd', 'e'].slice(0, nodes),
  });
  expect(named(wave('1', 1))).toBe(': a');
  expect(named(wave('@canary', 3))).toBe(': a, b, c');
  expect(named(wave('10', 10))).toBe(': a, b, c and 7 more');
  expect(named(wave('5', 5))).toBe(': a, b, c and 2 more');
  expect(named(wave('rest', 10))).toBe('');
  expect(named({ ...wave('10', 10), first: undefined })).toBe('');
});
