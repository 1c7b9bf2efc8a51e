// The one place that knows the library which keeps answers of the server.
import { QueryClient, useInfiniteQuery, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { addressOf, call, Refusal, type Operations } from '../api/client';

export { QueryClientProvider } from '@tanstack/react-query';

/** Nothing asks again sooner than this. */
export const slowest = 10_000;

export function newQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        refetchOnWindowFocus: true,
        retry: (count, error) => count < 3 && error instanceof Refusal && (error.status === 0 || error.status === 503),
        retryDelay: (attempt) => Math.min(1000 * 2 ** attempt, slowest),
      },
    },
  });
}

interface Options {
  enabled?: boolean;
  every?: number; // milliseconds; not below slowest
}

/** Asks a question of the API. The answer to another question is never shown in its place. */
export function useAsk<N extends keyof Operations>(name: N, request: Operations[N]['request'], options: Options = {}) {
  return useQuery<Operations[N]['response'], Refusal>({
    queryKey: [name, request],
    queryFn: ({ signal }) => call(name, request, signal),
    enabled: options.enabled,
    refetchInterval: options.every ? Math.max(options.every, slowest) : false,
  });
}

type Listed<T> = { items: T[] | null; next?: string; total?: number };
type ItemOf<N extends keyof Operations> = NonNullable<Operations[N]['response']> extends Listed<infer T> ? T : never;

/**
 * Asks for a list page by page; rows holds the pages that came. While the list of the same object is filtered anew it holds what was
 * there before, and says that it is old.
 */
export function useList<N extends keyof Operations>(name: N, request: Operations[N]['request'], options: Options = {}) {
  const address = addressOf(name, request);
  const asked = useInfiniteQuery<Operations[N]['response'], Refusal>({
    queryKey: [name, 'pages', request, address],
    queryFn: ({ pageParam, signal }) =>
      call(
        name,
        // How many there are in all is asked with the first page only.
        {
          ...request,
          ...(pageParam ? { total: undefined } : {}),
          after: pageParam as string,
          limit: 200,
        } as Operations[N]['request'],
        signal,
      ),
    initialPageParam: '',
    getNextPageParam: (last) => (last as Listed<unknown>).next || undefined,
    enabled: options.enabled,
    refetchInterval: options.every ? Math.max(options.every, slowest) : false,
    placeholderData: (before, query) => (query?.queryKey[3] === address ? before : undefined),
  });
  const rows = useMemo(
    () => (asked.data?.pages ?? []).flatMap((page) => (page as Listed<ItemOf<N>>).items ?? []),
    [asked.data],
  );
  return {
    rows,
    total: (asked.data?.pages[0] as Listed<unknown> | undefined)?.total,
    error: asked.error,
    loading: asked.isPending && asked.fetchStatus !== 'idle',
    old: asked.isPlaceholderData,
    whole: !asked.hasNextPage,
    more: () => {
      // A page that failed is asked for again by whoever reads why, not with each drawing of the list.
      if (asked.isPlaceholderData || asked.isFetchNextPageError) return;
      if (asked.hasNextPage && !asked.isFetchingNextPage) void asked.fetchNextPage();
    },
    again: () => void asked.refetch(),
  };
}

/**
 * Does something; questions that begin with one of the names are asked again after it. So they are after a conflict: what the page shows is
 * old then.
 */
export function useAct<N extends keyof Operations>(name: N, touches: (keyof Operations)[] = []) {
  const client = useQueryClient();
  const again = () => touches.forEach((one) => void client.invalidateQueries({ queryKey: [one] }));
  return useMutation<Operations[N]['response'], Refusal, Operations[N]['request']>({
    mutationFn: (request) => call(name, request),
    onSuccess: again,
    onError: (error) => {
      if (error.problem?.kind === 'conflict') again();
    },
  });
}

/** Has questions asked again. */
export function useAgain() {
  const client = useQueryClient();
  return (...names: (keyof Operations)[]) =>
    names.forEach((name) => void client.invalidateQueries({ queryKey: [name] }));
}

/** After a login within a page: what was refused is asked for again, and somebody else is shown nothing of the one before. */
export function useNewLogin() {
  const client = useQueryClient();
  return useCallback((same: boolean) => void (same ? client.invalidateQueries() : client.resetQueries()), [client]);
}
