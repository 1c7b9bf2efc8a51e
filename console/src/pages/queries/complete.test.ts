import { expect, it } from 'vitest';
import { csvOf, isQuery, stepsAfter, stepsIn, wantedAt } from './complete';

it('behind a comparison its values are asked for', () => {
  expect(wantedAt('inventory[certname]{facts.os.family = "De')).toEqual({
    kind: 'values',
    query: 'fact_contents[value, count()]{path = ["os","family"] group by value order by count() desc limit 40}',
    column: 'value',
    begun: '"De',
  });
  expect(wantedAt('nodes{certname = "web-1.')).toMatchObject({
    query: 'nodes[certname]{certname ~ "^web-1\\\\." order by certname limit 40}',
  });
  expect(wantedAt('nodes{environment =')).toMatchObject({ column: 'name', begun: '' });
  expect(wantedAt('nodes{certname')).toBeUndefined();
  expect(wantedAt('resources{title = "x')).toBeUndefined();
});

it('paths of facts go on step by step', () => {
  const paths = [
    ['os', 'family'],
    ['os', 'name'],
    ['os', 'release', 'full'],
    ['disks', 0, 'size'],
    ['a.b', 'c'],
  ];
  expect(wantedAt('nodes{facts.os.fa')).toEqual({ kind: 'paths', begun: 'facts.os.fa' });
  expect(stepsAfter('facts.', paths)).toEqual(['facts."a.b"', 'facts.disks', 'facts.os']);
  expect(stepsAfter('facts.os.', paths)).toEqual(['facts.os.family', 'facts.os.name', 'facts.os.release']);
  expect(stepsAfter('facts.os.re', paths)).toEqual(['facts.os.release']);
  expect(stepsAfter('facts.disks.', paths)).toEqual([]);
  expect(stepsIn('os."a.b".c')).toEqual(['os', 'a.b', 'c']);
  expect(stepsAfter('facts."C:\\x".', paths)).toEqual([]); // while it is typed it need not be right
});

it('queries are told from conditions', () => {
  expect(['nodes{}', ' nodes [certname] {}', '["from", "nodes"]'].map(isQuery)).toEqual([true, true, true]);
  expect(['certname = "a"', 'facts.a = 1', 'not nodes = 1'].map(isQuery)).toEqual([false, false, false]);
});

it('what is exported can be read by others', () => {
  expect(
    csvOf(
      ['a', 'b'],
      [
        { a: 'x,"y"', b: null },
        { a: 1, b: ['z'] },
      ],
    ),
  ).toBe('a,b\r\n"x,""y""",\r\n1,"[""z""]"\r\n');
});
