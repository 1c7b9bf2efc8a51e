import { expect, test } from 'vitest';
import { stepOf } from './Tour';

test('the tour begins by its link, goes on where it was, and stays ended', () => {
  expect(stepOf(null, undefined)).toBe(0);
  expect(stepOf(null, '1')).toBe(1);
  expect(stepOf('3', undefined)).toBe(3);
  expect(stepOf('5', '1')).toBe(5);
  expect(stepOf('ended', '1')).toBe(0);
  expect(stepOf('nonsense', undefined)).toBe(0);
});
