import { act, renderHook } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { JobEvent } from '../api/client';
import { listen, moves, useAfterEvents, useStream } from './live';

/** A connection whose other end is the test. */
class Source extends EventTarget {
  static all: Source[] = [];
  closed = false;
  constructor(readonly address: string) {
    super();
    Source.all.push(this);
  }
  close() {
    this.closed = true;
  }
}

const newest = () => Source.all.at(-1)!;

beforeEach(() => {
  Source.all = [];
  vi.useFakeTimers();
  vi.stubGlobal('EventSource', Source);
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it('comes back to a job behind the last change, also from a refusal, and goes at its end', () => {
  const heard: JobEvent[] = [];
  const { result } = renderHook(() => useStream('job.events', { job: '7' }, (e) => heard.push(e)));
  expect(newest().address).toBe('/api/v1/jobs/7/events');
  act(() => void newest().dispatchEvent(new Event('open')));
  expect(result.current).toBe('live');
  newest().dispatchEvent(new MessageEvent('change', { data: '{"run":{"node":"a"}}', lastEventId: '12' }));
  expect(heard).toEqual([{ run: { node: 'a' } }]);

  for (let times = 0; times < 5; times++) {
    const before = Source.all.length;
    act(() => void newest().dispatchEvent(new Event('error')));
    expect(result.current).toBe('lost');
    expect(newest().closed).toBe(true);
    act(() => void vi.advanceTimersByTime(15_000));
    expect(Source.all.length).toBe(before + 1);
    expect(newest().address).toBe('/api/v1/jobs/7/events?after=12');
  }

  newest().dispatchEvent(new MessageEvent('end', { data: '{}' }));
  expect(Source.all.filter((s) => !s.closed)).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(Source.all.length).toBe(6);
});

it('asks again for what was not heard: when the stream comes back, and now and then without one', () => {
  vi.stubGlobal('navigator', {}); // no other tab
  const asks = vi.fn();
  renderHook(() => useAfterEvents(moves, asks));
  act(() => void vi.advanceTimersByTime(30_000));
  expect(asks).toHaveBeenCalledTimes(1);
  let end = () => {};
  act(() => void (end = listen()));
  act(() => void newest().dispatchEvent(new Event('open')));
  expect(asks).toHaveBeenCalledTimes(2);
  act(() => void newest().dispatchEvent(new Event('error')));
  act(() => void vi.advanceTimersByTime(60_000));
  expect(asks).toHaveBeenCalledTimes(2);
  act(() => void newest().dispatchEvent(new Event('open')));
  expect(asks).toHaveBeenCalledTimes(3);
  end();
});
