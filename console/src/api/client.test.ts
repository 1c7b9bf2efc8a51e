import { afterEach, describe, expect, it, vi } from 'vitest';
import { mayDo } from '../data/session';
import { call, place } from './client';

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
