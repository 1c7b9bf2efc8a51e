import { afterEach, describe, expect, it, vi } from 'vitest';
import { mayDo } from '../data/session';
import { call, callEach, eventsIn, place, Refusal } from './client';

describe('requests', () => {
  it('puts each member where the operation has it', () => {
    expect(place('node.show', { name: 'a/b.example' })).toEqual({
      path: '/api/v1/nodes/a%2Fb.example',
      body: undefined,
    });
    expect(place('node.list', { where: 'a = "b"', state: '', limit: 5 }).path).toBe(
      '/api/v1/nodes?where=a+%3D+%22b%22&limit=5',
    );
    expect(place('job.stop', { job: '7', kill: true })).toEqual({ path: '/api/v1/jobs/7/stop', body: '{"kill":true}' });
    expect(place('group.edit', { 'path.group': 'All Nodes', group: { name: 'All Nodes' } })).toEqual({
      path: '/api/v1/groups/All%20Nodes',
      body: '{"group":{"name":"All Nodes"}}',
    });
  });
});

describe('permissions', () => {
  it('asks the grants of the session', () => {
    const session = { kind: 'user', name: 'ann', roles: [], grants: [{ permission: 'node:read' }] };
    expect(mayDo(session, 'node:read')).toBe(true);
    expect(mayDo(session, 'job:stop')).toBe(false);
    expect(mayDo({ ...session, grants: [{ permission: '*' }] }, 'job:stop')).toBe(true);
    expect(mayDo(undefined, 'node:read')).toBe(false);
  });
});

describe('answers', () => {
  afterEach(() => void vi.unstubAllGlobals());
  it('are none when they cannot be read, also with a status of success', async () => {
    vi.stubGlobal('fetch', async () => new Response('<html>Log in to the proxy</html>'));
    await expect(call('job.stop', { job: '7' })).rejects.toMatchObject({ name: 'Error', status: 200 });
  });
  it('that break off are refused like those that do not come', async () => {
    const broken = { status: 200, ok: true, text: () => Promise.reject(new TypeError('network error')) };
    vi.stubGlobal('fetch', async () => broken);
    await expect(call('job.stop', { job: '7' })).rejects.toMatchObject({ status: 0, problem: { kind: 'unavailable' } });
  });
});

describe('rows that end early', () => {
  afterEach(() => void vi.unstubAllGlobals());
  it('are no answer: nobody takes them for all', async () => {
    const problem = { kind: 'unavailable', message: 'the database is away' };
    vi.stubGlobal('fetch', async () => new Response(JSON.stringify({ columns: ['a'], rows: [{ a: 1 }], problem })));
    await expect(call('query.run', { query: 'nodes{}' })).rejects.toMatchObject({ problem });
  });
});

describe('answers that come in pieces', () => {
  afterEach(() => void vi.unstubAllGlobals());
  const ask = { module: 'rpcutil', action: 'ping', targets: { all: true } };
  const said = async (text: string) => {
    vi.stubGlobal('fetch', async () => new Response(text));
    const came: unknown[] = [];
    await callEach('action.ask', ask, (e) => came.push(e), new AbortController().signal);
    return came;
  };
  it('are handed over one by one, until the end', async () => {
    expect(eventsIn('event: change\ndata: {}\n\n: still there\n\nevent: cha')).toEqual({
      events: [
        { kind: 'change', data: '{}' },
        { kind: '', data: '' },
      ],
      rest: 'event: cha',
    });
    expect(await said('event: change\ndata: {"answer":1}\n\n: beat\n\nevent: end\ndata: {}\n\n')).toEqual([
      { answer: 1 },
    ]);
  });
  it('are refused in words, also by a proxy', async () => {
    const refused = async (text: string) => {
      vi.stubGlobal('fetch', async () => new Response(text, { status: 502 }));
      await callEach('action.ask', ask, () => {}, new AbortController().signal);
    };
    await expect(refused('{"kind":"unavailable","message":"later"}')).rejects.toMatchObject({ message: 'later' });
    await expect(refused('<html>Bad gateway</html>')).rejects.toMatchObject({ status: 502, name: 'Error' });
    await expect(refused('<html>Bad gateway</html>')).rejects.toBeInstanceOf(Refusal);
  });
  it('are not whole without it', async () => {
    await expect(said('event: change\ndata: {}\n\n')).rejects.toMatchObject({ problem: { kind: 'unavailable' } });
  });
});
