// One stream of what happens in Puppet runs for all tabs of a browser: the tab that has the lock holds it, the others hear it from
// that tab. A browser allows only six connections to a host without HTTP/2.
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { streamAddress, type Event, type Operations } from '../api/client';

export type Link = 'connecting' | 'live' | 'lost' | 'off';

interface Told {
  kind: 'event' | 'link';
  event?: Event;
  link?: Link;
  since?: number;
}

type Hearer = (event: Event) => void;

const hearers = new Set<Hearer>();
const watchers = new Set<() => void>();
let link: { state: Link; since: number } = { state: 'off', since: Date.now() };
let channel: BroadcastChannel | undefined;
let seen = 0;

function hear(told: Told) {
  if (told.kind === 'link' && told.link) {
    if (told.link !== link.state) link = { state: told.link, since: told.since ?? Date.now() };
    watchers.forEach((tell) => tell());
  }
  if (told.event && told.event.number > seen) {
    seen = told.event.number;
    hearers.forEach((tell) => tell(told.event!));
  }
}

function say(told: Told) {
  hear(told);
  channel?.postMessage(told);
}

type Take = (message: MessageEvent<string>) => void;

/**
 * Follows a stream until it is to end. A connection that breaks, or that the server or a proxy refuses, is opened anew: a browser by
 * itself comes back from the first only.
 */
function follow(stop: AbortSignal, address: () => string, takes: Record<string, Take>, tell: (link: Link) => void) {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wait = 1000;
  const open = () => {
    const opened = new EventSource(address());
    source = opened;
    opened.addEventListener('open', () => {
      wait = 1000;
      tell('live');
    });
    for (const [kind, take] of Object.entries(takes)) {
      opened.addEventListener(kind, (message) => take(message as MessageEvent<string>));
    }
    opened.addEventListener('error', () => {
      opened.close();
      tell('lost');
      timer = setTimeout(open, wait * (0.5 + Math.random()));
      wait = Math.min(wait * 2, 10_000);
    });
  };
  stop.addEventListener('abort', () => {
    clearTimeout(timer);
    source?.close();
  });
  if (!stop.aborted) open();
}

/** Holds the stream for all tabs until it is to end. It comes back behind the event that was seen last. */
function hold(stop: AbortSignal): Promise<void> {
  const tell = (now: Link) => say({ kind: 'link', link: now, since: Date.now() });
  tell('connecting');
  follow(
    stop,
    () => streamAddress('event.stream', seen > 0 ? { after: String(seen) } : {}),
    {
      position: (message) => {
        seen = Math.max(seen, Number(message.lastEventId) || 0);
      },
      event: (message) => say({ kind: 'event', event: JSON.parse(message.data) as Event }),
    },
    tell,
  );
  return new Promise((resolve) => stop.addEventListener('abort', () => resolve()));
}

/** Begins to listen; the answer ends it. */
export function listen(): () => void {
  const stop = new AbortController();
  channel = new BroadcastChannel('tutti-live');
  channel.onmessage = (message) => {
    const told = message.data as Told | 'who';
    if (told !== 'who') hear(told);
    else if (leads) channel?.postMessage({ kind: 'link', link: link.state, since: link.since });
  };
  channel.postMessage('who');
  let leads = false;
  const lead = async () => {
    leads = true;
    await hold(stop.signal);
  };
  if (navigator.locks) {
    navigator.locks.request('tutti-live', { signal: stop.signal }, lead).catch(() => {});
  } else {
    void lead();
  }
  return () => {
    stop.abort();
    channel?.close();
    channel = undefined;
    link = { state: 'off', since: Date.now() };
  };
}

/** Hears each event as it comes. */
export function useEvents(tell: Hearer) {
  const heard = useEffectEvent(tell);
  useEffect(() => {
    const one: Hearer = (event) => heard(event);
    hearers.add(one);
    return () => void hearers.delete(one);
  }, []);
}

/** How the stream stands. */
export function useLink() {
  const [now, setNow] = useState(link);
  useEffect(() => {
    const tell = () => setNow(link);
    tell();
    watchers.add(tell);
    return () => void watchers.delete(tell);
  }, []);
  return now;
}

/** Calls something when the stream comes, or comes back: what was before that is not heard. */
export function useOnceLive(act: () => void) {
  const { state } = useLink();
  const before = useRef(state);
  const due = useEffectEvent(act);
  useEffect(() => {
    if (state === 'live' && before.current !== 'live') due();
    before.current = state;
  }, [state]);
}

/** How often those ask who may not hear the stream. */
const deaf = 30_000;

/** Whether an event changes how a node stands: a run of Puppet ended, its agent came or went. */
export function moves(event: Event): boolean {
  return ['end', 'connect', 'disconnect'].includes(event.kind);
}

/** Calls something soon after events that matter, and at most every ten seconds; who may hear none asks now and then. */
export function useAfterEvents(matters: (event: Event) => boolean, act: () => void) {
  const state = useRef({ last: 0, timer: undefined as ReturnType<typeof setTimeout> | undefined });
  const due = useEffectEvent(act);
  useEvents((event) => {
    const s = state.current;
    if (!matters(event) || s.timer) return;
    const wait = Math.max(1000, s.last + 10_000 - Date.now());
    s.timer = setTimeout(() => {
      s.timer = undefined;
      s.last = Date.now();
      due();
    }, wait);
  });
  useOnceLive(act);
  const hears = useLink().state !== 'off';
  useEffect(() => {
    if (hears) return;
    const timer = setInterval(() => due(), deaf);
    return () => clearInterval(timer);
  }, [hears]);
  useEffect(() => {
    const s = state.current;
    return () => clearTimeout(s.timer);
  }, []);
}

/** Follows a stream of one thing to its end; without a request none is followed. */
export function useStream<N extends keyof Operations>(
  name: N,
  request: Operations[N]['request'] | undefined,
  tell: (event: Operations[N]['response']) => void,
): Link {
  const [state, setState] = useState<Link>('connecting');
  const heard = useEffectEvent(tell);
  const wanted = request && JSON.stringify(request); // the same words are the same stream
  useEffect(() => {
    if (!wanted) return;
    const stop = new AbortController();
    const asked = JSON.parse(wanted) as Operations[N]['request'];
    let after = '';
    follow(
      stop.signal,
      () => streamAddress(name, after ? { ...asked, after } : asked),
      {
        change: (message) => {
          after = message.lastEventId;
          heard(JSON.parse(message.data) as Operations[N]['response']);
        },
        end: () => stop.abort(),
      },
      setState,
    );
    return () => stop.abort();
  }, [name, wanted]);
  return wanted ? state : 'off';
}

/** Calls something for what comes in a crowd: soon after the first, and no more often than given. */
export function useCalmly(act: () => void, milliseconds: number): () => void {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const due = useEffectEvent(act);
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      due();
    }, milliseconds);
  };
}
