import { operations, prefix, type Operations } from './operations';
import type { Problem, QueryAnswer, Session } from './types';

export type { Operations } from './operations';
export type * from './types';

/** What went wrong, as the server says it. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(problem.message);
  }
}

let csrf = '';

/** Is told when the server does not know the session any more. */
let ended: () => void = () => {};

export function whenEnded(tell: () => void) {
  ended = tell;
}

async function send(path: string, init: RequestInit): Promise<unknown> {
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(path, { credentials: 'same-origin', ...init });
    text = await answer.text(); // the connection may break within the answer
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new Refusal(0, {
      kind: 'unavailable',
      message: 'The server does not answer. This page goes on by itself when it does.',
      request_id: '',
    } as Problem);
  }
  if (answer.status === 204) return undefined;
  return bodyOf(answer, text);
}

/** What an answer says; one that is no success is thrown. */
function bodyOf(answer: Response, text: string): unknown {
  if (answer.status === 401) ended();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // A success that cannot be read is none: a proxy's own page comes with status 200, too.
    throw new Refusal(answer.status, {
      kind: 'internal',
      message: `The answer, with status ${answer.status}, is not one of the server: look at the proxy before it.`,
      request_id: '',
    } as Problem);
  }
  if (answer.ok) return body;
  throw new Refusal(answer.status, body as Problem);
}

/** Puts the members of a request where its operation has them: the path, the query, the body. */
export function place(name: keyof Operations, request: Record<string, unknown>): { path: string; body?: string } {
  const op = operations[name];
  const rest = { ...request };
  let path = op.path.replace(/\{([\w.]+)\}/g, (_, key: string) => {
    const value = rest[key];
    delete rest[key];
    return encodeURIComponent(String(value));
  });
  const query = new URLSearchParams();
  for (const key of op.query) {
    const value = rest[key];
    delete rest[key];
    if (value !== undefined && value !== '' && value !== false && value !== null) query.set(key, String(value));
  }
  if ([...query].length > 0) path += `?${query}`;
  const members = Object.keys(rest).length > 0;
  const bodyless = op.method === 'GET' || op.method === 'DELETE';
  return { path: prefix + path, body: bodyless ? undefined : members ? JSON.stringify(rest) : '{}' };
}

/** The object that a request is about: the path of its address, without what filters. */
export function addressOf<N extends keyof Operations>(name: N, request: Operations[N]['request']): string {
  return place(name, request as Record<string, unknown>).path.split('?')[0]!;
}

/** Calls an operation of the API. */
export async function call<N extends keyof Operations>(
  name: N,
  request: Operations[N]['request'],
  signal?: AbortSignal,
): Promise<Operations[N]['response']> {
  const { path, body } = place(name, request as Record<string, unknown>);
  const headers: Record<string, string> = {};
  const { method } = operations[name];
  if (method !== 'GET') headers['X-Tutti-Csrf'] = csrf;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const answer = await send(path, { method, headers, body, signal });
  // Rows are sent as they are found: when the server cannot go on, it says so behind them. They are not all, and no answer.
  const early = name === 'query.run' ? (answer as QueryAnswer).problem : undefined;
  if (early) throw new Refusal(200, early);
  return answer as Operations[N]['response'];
}

/** Takes the events out of what has come so far; what is not whole yet is left. */
export function eventsIn(text: string): { events: { kind: string; data: string }[]; rest: string } {
  const parts = text.split('\n\n');
  const rest = parts.pop() ?? '';
  const events = parts.map((part) => {
    const fields = { event: '', data: '' };
    for (const line of part.split('\n')) {
      const [, name, value] = /^(event|data): ?(.*)$/.exec(line) ?? [];
      if (name === 'event') fields.event = value!;
      if (name === 'data') fields.data += value!;
    }
    return { kind: fields.event, data: fields.data };
  });
  return { events, rest };
}

/** Calls an act whose answer comes in pieces, and hands each over. One that breaks off is not taken up again. */
export async function callEach<N extends keyof Operations>(
  name: N,
  request: Operations[N]['request'],
  tell: (event: Operations[N]['response']) => void,
  signal: AbortSignal,
): Promise<void> {
  const { path, body } = place(name, request as Record<string, unknown>);
  const headers = { 'X-Tutti-Csrf': csrf, 'Content-Type': 'application/json' };
  const broken = () =>
    new Refusal(0, {
      kind: 'unavailable',
      message: 'The connection broke before all answers were there. What the others did is not known here.',
      request_id: '',
    } as Problem);
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: 'same-origin', method: operations[name].method, headers, body, signal });
  } catch (cause) {
    if (signal.aborted) return;
    throw cause instanceof TypeError ? broken() : cause;
  }
  if (!answer.ok || !answer.body) {
    const text = await answer.text().catch(() => '');
    if (signal.aborted) return;
    bodyOf(answer, text);
    throw broken(); // a success without a body
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = '';
  try {
    for (;;) {
      // Pieces come one after the other.
      // oxlint-disable-next-line no-await-in-loop
      const { done, value } = await reader.read();
      if (done) throw broken();
      const { events, rest } = eventsIn(left + value);
      left = rest;
      for (const e of events) {
        if (e.kind === 'end') return;
        if (e.kind === 'change') tell(JSON.parse(e.data) as Operations[N]['response']);
      }
    }
  } catch (cause) {
    if (signal.aborted) return;
    throw cause instanceof Refusal ? cause : broken();
  }
}

/** The address of a stream. */
export function streamAddress<N extends keyof Operations>(name: N, request: Operations[N]['request']): string {
  return place(name, request as Record<string, unknown>).path;
}

interface Opened {
  session?: Session;
  csrf?: string;
}

/** Who is logged in; undefined: nobody. */
export async function whoAmI(): Promise<Session | undefined> {
  const opened = (await send('/session', { method: 'GET' })) as Opened;
  csrf = opened.csrf ?? '';
  return opened.session;
}

export async function logIn(proof: { name: string; password: string } | { code: string }): Promise<void> {
  const body = JSON.stringify({ name: '', password: '', ...proof });
  const opened = (await send('/session', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body,
  })) as Opened;
  csrf = opened.csrf ?? '';
}

export async function logOut(): Promise<void> {
  await send('/session', { method: 'DELETE', headers: { 'X-Tutti-Csrf': csrf } });
  csrf = '';
}
