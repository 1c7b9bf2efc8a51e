// One stream of what happens in Puppet runs for all tabs of a browser: the tab that has the lock holds it, the others hear it from
// that tab. A browser allows only six connections to a host without HTTP/2.
import { useEffect, useRef, useState } from 'react';
import { streamAddress, type Event } from '../api/client';

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

/** Holds the stream until it is to end. It comes back behind the event that was seen last. */
function hold(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let source: EventSource | undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wait = 1000;
    const open = () => {
      if (stop.aborted) return;
      source = new EventSource(streamAddress('event.stream', seen > 0 ? { after: String(seen) } : {}));
      const alive = () => {
        wait = 1000;
        say({ kind: 'link', link: 'live', since: Date.now() });
      };
      source.addEventListener('position', (message) => {
        seen = Math.max(seen, Number((message as MessageEvent).lastEventId) || 0);
        alive();
      });
      source.addEventListener('event', (message) => {
        alive();
        say({ kind: 'event', event: JSON.parse((message as MessageEvent<string>).data) as Event });
      });
      source.addEventListener('error', () => {
        source?.close();
        say({ kind: 'link', link: 'lost', since: Date.now() });
        timer = setTimeout(open, wait * (0.5 + Math.random()));
        wait = Math.min(wait * 2, 10_000);
      });
    };
    stop.addEventListener('abort', () => {
      clearTimeout(timer);
      source?.close();
      resolve();
    });
    say({ kind: 'link', link: 'connecting', since: Date.now() });
    open();
  });
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
  const newest = useRef(tell);
  newest.current = tell;
  useEffect(() => {
    const one: Hearer = (event) => newest.current(event);
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

/** Calls something soon after events that matter, and at most every ten seconds. */
export function useAfterEvents(matters: (event: Event) => boolean, act: () => void) {
  const state = useRef({ last: 0, timer: undefined as ReturnType<typeof setTimeout> | undefined });
  const newest = useRef(act);
  newest.current = act;
  useEvents((event) => {
    const s = state.current;
    if (!matters(event) || s.timer) return;
    const wait = Math.max(1000, s.last + 10_000 - Date.now());
    s.timer = setTimeout(() => {
      s.timer = undefined;
      s.last = Date.now();
      newest.current();
    }, wait);
  });
  useEffect(() => {
    const s = state.current;
    return () => clearTimeout(s.timer);
  }, []);
}

/** Follows a stream that ends: of one job. */
export function useStream<E>(address: string | undefined, tell: (event: E) => void): Link {
  const [now, setNow] = useState<Link>('connecting');
  const newest = useRef(tell);
  newest.current = tell;
  useEffect(() => {
    if (!address) {
      setNow('off');
      return;
    }
    const source = new EventSource(address);
    source.addEventListener('open', () => setNow('live'));
    source.addEventListener('change', (message) =>
      newest.current(JSON.parse((message as MessageEvent<string>).data) as E),
    );
    source.addEventListener('end', () => {
      source.close();
      setNow('off');
    });
    source.addEventListener('error', () => setNow('lost')); // the browser comes back by itself, with the last number
    return () => source.close();
  }, [address]);
  return now;
}
