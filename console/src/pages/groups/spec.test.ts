import { expect, it } from 'vitest';
import type { Group } from '../../api/client';
import { amiss, below, blank, draftOf, exported, flagsBetween, groupsIn, heldBack, read, specOf, typed } from './spec';

const web: Group = {
  id: '1',
  name: 'Web',
  parent: 'Debian',
  parent_id: '2',
  environment_group: false,
  revision: 7,
  rule: ['=', ['fact', 'role'], 'web'],
  rule_text: 'facts.role = "web"',
  nodes: ['a.test'],
  classes: { apache: { port: 80, name: '80' }, base: {} },
  variables: { tier: 'gold' },
};

it('texts stand for themselves, and what could be read as something else is quoted', () => {
  for (const value of ['gold', '80', 'true', 80, true, null, ['a'], { a: 1 }, ''])
    expect(read(typed(value))).toEqual(value);
  expect(typed('gold')).toBe('gold');
  expect(typed('80')).toBe('"80"');
});

it('a group that nobody changed goes back as it is', () => {
  const draft = draftOf(web);
  expect(specOf(draft, web)).toEqual({
    name: 'Web',
    parent: '2',
    rule: web.rule,
    nodes: ['a.test'],
    classes: web.classes,
    variables: web.variables,
    data: {},
  });
  expect(flagsBetween(draft, draft)).toEqual([]);
});

it('changes are the flags of the command line', () => {
  const draft = draftOf(web);
  expect(
    flagsBetween(draft, {
      ...draft,
      rule: '',
      environment: 'test',
      decides: true,
      nodes: ['b.test'],
      classes: ['base', 'nginx'],
      parameters: [{ name: 'nginx::port', value: '8080' }],
      variables: [{ name: 'tier', value: 'silver' }],
      data: [{ name: 'ssh::server::port', value: '22' }],
    }),
  ).toEqual([
    ...['--environment', 'test', '--environment-group', '--rule=', '--pin', 'b.test', '--unpin', 'a.test'],
    ...['--class', 'nginx', '--no-class', 'apache', '--param', 'nginx::port=8080'],
    ...['--variable', 'tier=silver', '--data-value', 'ssh::server::port=22'],
  ]);
  expect(flagsBetween(blank, { ...blank, name: 'New', parent: 'Web' })).toEqual(['--parent', 'Web']);
  expect(specOf({ ...blank, name: 'New', data: [{ name: 'ssh::server::port', value: '22' }] }).data).toEqual({
    'ssh::server': { port: 22 },
  });
});

it('what does not hold together is said before it is sent', () => {
  expect(amiss({ ...blank, parameters: [{ name: 'port', value: '1' }] })).toContain('CLASS::NAME');
  expect(amiss({ ...blank, parameters: [{ name: 'apache::port', value: '1' }] })).toContain('add apache');
  const twice = { name: 'tier', value: '1' };
  expect(amiss({ ...blank, variables: [twice, twice] })).toBe('tier is given twice.');
  expect(amiss(draftOf(web))).toBe('');
});

it('a file is a list of groups, without numbers that a browser would change', () => {
  expect(groupsIn('{"groups": [{"name": "Web"}]}')).toEqual({ groups: [{ name: 'Web' }], wrong: '' });
  expect(groupsIn('[]').wrong).toContain('no list');
  expect(groupsIn('groups:\n- name: Web').wrong).toContain('YAML is read by the command line');
  const large = '{"groups": [{"name": "Web", "data": {"app": {"serial": 12345678901234567890}}}]}';
  expect(groupsIn(large).wrong).toContain('Web has a number');
});

it('numbers that a browser would change are known', () => {
  const large = JSON.parse('12345678901234567890') as number;
  expect(heldBack([web, { ...web, classes: { a: { b: [{ c: large }] } } }])).toContain('Web has a number');
  expect(heldBack([web])).toBe('');
});

it('the root has no parent and no rule to be chosen', () => {
  const root = { ...web, id: '0', parent_id: '0', name: 'All Nodes' };
  expect(exported(root)).not.toMatchObject({ rule: expect.anything() as unknown });
  expect(below([root, { ...web, parent_id: '0' }, { ...web, id: '3', parent_id: '1' }], '1')).toHaveLength(1);
});
