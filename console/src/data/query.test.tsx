import { act, renderHook, waitFor } from '@testing-library/react';
import type { ReactNode } from 'react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { newQueryClient, QueryClientProvider, useAct, useAsk, useList } from './query';

/** A server whose answers the test gives. */
let asked: { address: string; answer: (status: number, body: unknown) => void }[] = [];

beforeEach(() => {
  asked = [];
  vi.stubGlobal(
    'fetch',
    (address: string) =>
      new Promise((resolve) => {
        asked.push({
          address,
          answer: (status, body) => resolve(new Response(JSON.stringify(body), { status })),
        });
      }),
  );
});
afterEach(() => void vi.unstubAllGlobals());

function render<P, R>(hook: (props: P) => R, initialProps: P) {
  const client = newQueryClient();
  const wrapper = ({ children }: { children: ReactNode }) => (
    <QueryClientProvider client={client}>{children}</QueryClientProvider>
  );
  return renderHook(hook, { wrapper, initialProps });
}

it('never shows the answer to another question', async () => {
  const hook = ({ title }: { title?: string }) => useAsk('resource.variants', { type: 'File', title }).data;
  const { result, rerender } = render(hook, { title: 'a' });
  asked[0]!.answer(200, { items: [] });
  await waitFor(() => expect(result.current).toEqual({ items: [] }));
  rerender({ title: 'b' });
  expect(result.current).toBeUndefined();
});

it('keeps the rows of an object while they are filtered anew, says so, and shows none of another one', async () => {
  const hook = (request: { preview: string; state?: string }) => useList('preview.nodes', request);
  const { result, rerender } = render(hook, { preview: '1' } as { preview: string; state?: string });
  asked[0]!.answer(200, { items: [{ name: 'a' }], next: 'a' });
  await waitFor(() => expect(result.current.rows).toHaveLength(1));
  expect(result.current.old).toBe(false);
  rerender({ preview: '1', state: 'failed' });
  expect([result.current.rows.length, result.current.old]).toEqual([1, true]);
  act(result.current.more); // the next page is not that of the new question
  expect(asked.map((a) => a.address)).toEqual([
    '/api/v1/previews/1/nodes?limit=200',
    '/api/v1/previews/1/nodes?state=failed&limit=200',
  ]);
  rerender({ preview: '2' });
  expect([result.current.rows.length, result.current.old]).toEqual([0, false]);
});

it('asks again for what was in conflict with an act', async () => {
  const both = () => ({ group: useAsk('group.show', { group: 'Web' }), edit: useAct('group.edit', ['group.show']) });
  const { result } = render(both, undefined);
  asked[0]!.answer(200, { name: 'Web', revision: 1 });
  await waitFor(() => expect(result.current.group.data?.revision).toBe(1));
  act(() => result.current.edit.mutate({ 'path.group': 'Web', group: { name: 'Web' }, revision: 1 }));
  await waitFor(() => expect(asked).toHaveLength(2));
  asked[1]!.answer(409, { kind: 'conflict', message: 'somebody changed it' });
  await waitFor(() => expect(asked).toHaveLength(3));
  asked[2]!.answer(200, { name: 'Web', revision: 2 });
  await waitFor(() => expect(result.current.group.data?.revision).toBe(2));
});

it('does not ask again and again for a page that is refused', async () => {
  const { result } = render(() => useList('preview.nodes', { preview: '1' }), undefined);
  asked[0]!.answer(200, { items: [{ name: 'a' }], next: 'a' });
  await waitFor(() => expect(result.current.rows).toHaveLength(1));
  act(result.current.more);
  await waitFor(() => expect(asked).toHaveLength(2));
  asked[1]!.answer(500, { message: 'the database is away' });
  await waitFor(() => expect(result.current.error?.message).toBe('the database is away'));
  act(result.current.more);
  expect(asked).toHaveLength(2);
  act(result.current.again);
  await waitFor(() => expect(asked).toHaveLength(3));
});
