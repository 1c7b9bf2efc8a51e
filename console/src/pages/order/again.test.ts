import { expect, it } from 'vitest';
import type { Job } from '../../api/client';
import { formOf } from './again';

const job = (more: Partial<Job>) =>
  ({ kind: 'task', targets: { all: true }, environment: 'production', ...more }) as Job;

it('the form of a task is filled in, without its secrets', () => {
  const order = { task: 'web::restart', parameters: { action: 'reload', wait: 7, note: '', password: '(hidden)' } };
  expect(formOf(job({ order, targets: { query: 'certname = "a"', exclude: ['b'] } }))).toEqual({
    to: '/tasks/web%3A%3Arestart',
    search: { where: 'certname = "a"', exclude: 'b', 'p.action': 'reload', 'p.wait': '7', empty: 'note' },
  });
});

it('so is that of an action', () => {
  const order = { module: 'service', action: 'restart', input: { service: 'ssh' } };
  expect(formOf(job({ kind: 'action', order, targets: { query: 'nodes[certname]{}' } }))).toEqual({
    to: '/actions/service',
    search: { by: 'query', query: 'nodes[certname]{}', 'p.service': 'ssh', action: 'restart' },
  });
});

it('it means no node that was left out, and changes nothing if the job did not', () => {
  const order = { task: 'status', parameters: {} };
  const form = formOf(job({ order, noop: true, targets: { nodes: ['a', 'b', 'c'], exclude: ['b'] } }));
  expect(form?.search).toEqual({ by: 'nodes', nodes: 'a, c', noop: 'yes' });
});

it('other jobs have no form, and some nodes cannot be named by one', () => {
  expect(formOf(job({ kind: 'puppet', order: {} }))).toBeUndefined();
  const order = { task: 'status', parameters: {} };
  expect(formOf(job({ order, targets: { group: 'Web', nodes: ['a'] } }))?.search).toEqual({});
});
