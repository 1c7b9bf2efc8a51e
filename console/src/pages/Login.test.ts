import { expect, test } from 'vitest';
import { pageOf } from './Login';

test('a link leads to a page of this console, and to no other place', () => {
  expect(pageOf('')).toEqual({ to: '/', search: {} });
  expect(pageOf('?page=%2Fnodes%3Fstate%3Dfailed')).toEqual({ to: '/nodes', search: { state: 'failed' } });
  for (const bad of [
    '//evil.test/x',
    'https://evil.test/',
    '/\\\\evil.test',
    'javascript:alert(1)',
    'nodes',
    '/\t/evil.test',
  ]) {
    expect(pageOf(`?page=${encodeURIComponent(bad)}`)).toEqual({ to: '/', search: {} });
  }
});
