import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { JobRun } from '../api/client';
import { newQueryClient, QueryClientProvider } from '../data/query';
import { runsIn, useJob } from './Job';

const run = (node: string, state: string) => ({ node, state }) as JobRun;
const fresh = new Map([run('a', 'failed'), run('z', 'failed'), run('b', 'running')].map((r) => [r.node, r]));
const names = (runs: JobRun[]) => runs.map((r) => `${r.node} ${r.state}`);

describe('runs of a job', () => {
  const listed = [run('a', 'running'), run('b', 'waiting'), run('c', 'failed')];
  it('are those of the list, as they are by now', () => {
    expect(names(runsIn(undefined, listed, fresh))).toEqual(['a failed', 'b running', 'c failed']);
  });
  it('in a state, have those that came into it since, and none that left it', () => {
    expect(names(runsIn('failed', [listed[2]!], fresh))).toEqual(['c failed', 'a failed', 'z failed']);
    expect(names(runsIn('waiting', [listed[1]!], fresh))).toEqual([]);
  });
});

describe('a job whose stream was lost', () => {
  afterEach(() => void vi.unstubAllGlobals());
  it('is over when the server says so, and its runs are followed to the end of the stream', async () => {
    const sources: (EventTarget & { close: () => void })[] = [];
    const close = vi.fn();
    class Source extends EventTarget {
      close = close;
      constructor() {
        super();
        sources.push(this);
      }
    }
    let state = 'running';
    vi.stubGlobal('EventSource', Source);
    vi.stubGlobal('fetch', async () => new Response(JSON.stringify({ id: '7', state })));
    const client = newQueryClient();
    const wrapper = ({ children }: { children: ReactNode }) => (
      <QueryClientProvider client={client}>{children}</QueryClientProvider>
    );
    const { result } = renderHook(() => useJob('7'), { wrapper });
    await waitFor(() => expect(sources).toHaveLength(1));
    const change = (data: string) => new MessageEvent('change', { data, lastEventId: '1' });
    act(() => void sources[0]!.dispatchEvent(change('{"job":{"id":"7","state":"running"}}')));
    state = 'stopped';
    await act(async () => void (await result.current.show.refetch()));
    await waitFor(() => expect(result.current.job?.state).toBe('stopped'));
    expect(close).not.toHaveBeenCalled();
    act(() => void sources[0]!.dispatchEvent(change('{"run":{"node":"a","state":"killed"}}')));
    await waitFor(() => expect(result.current.runs.get('a')?.state).toBe('killed'));
  });
});
