import { expect, test } from 'vitest';
import { pathText, valuesQuery } from './Facts';

test('a path is written as the command line reads it', () => {
  expect(pathText(['os', 'family'])).toBe('os.family');
  expect(pathText(['processors', 'models', 0])).toBe('processors.models[0]');
});

test('a key with quotes stays a text of the question', () => {
  expect(valuesQuery(['a"b', 1])).toBe(
    'fact_contents[value, count()]{path = ["a\\"b",1] group by value order by count() desc, value}',
  );
});
