import { expect, test } from 'vitest';
import { atOnce, flagsOf, isWhole, optionsOf } from './waves';

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
