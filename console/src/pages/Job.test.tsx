import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { newQueryClient, QueryClientProvider, useList } from '../data/query';
import { calmOf, useJob } from './Job';

describe('how calm a list of runs is', () => {
  it('follows at once where there are few nodes, and every five seconds where there are many', () => {
    expect([0, 100, 4000, 10_000, 50_000].map(calmOf)).toEqual([1000, 1000, 2000, 5000, 5000]);
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
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (address: string) => {
      asked.push(address);
      return new Response(JSON.stringify({ id: '7', state, nodes: 2, items: [] }));
    });
    const client = newQueryClient();
    const wrapper = ({ children }: { children: ReactNode }) => (
      <QueryClientProvider client={client}>{children}</QueryClientProvider>
    );
    const { result } = renderHook(() => ({ list: useList('job.runs', { job: '7' }), ...useJob('7') }), { wrapper });
    await waitFor(() => expect(sources).toHaveLength(1));
    const change = (data: string) => new MessageEvent('change', { data, lastEventId: '1' });
    act(() => void sources[0]!.dispatchEvent(change('{"job":{"id":"7","state":"running"}}')));
    state = 'stopped';
    await act(async () => void (await result.current.show.refetch()));
    await waitFor(() => expect(result.current.job?.state).toBe('stopped'));
    expect(close).not.toHaveBeenCalled();
    asked.length = 0;
    act(() => void sources[0]!.dispatchEvent(change('{"job":{"id":"7","state":"stopped"}}')));
    await waitFor(() => expect(asked.filter((address) => address.includes('/runs'))).toHaveLength(1));
  });
});
