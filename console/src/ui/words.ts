// The words for states, and how times and numbers are written: one place, so that they are the same everywhere.

export type Tone = 'ok' | 'changed' | 'warn' | 'bad' | 'calm';

export interface Word {
  text: string;
  tone: Tone;
  means: string;
}

/** The state of a node's last run. */
export const runStates: Record<string, Word> = {
  failed: { text: 'failed', tone: 'bad', means: 'a resource failed, or the catalog does not compile' },
  corrective: { text: 'corrective', tone: 'warn', means: 'something had changed on the node, and was changed back' },
  changed: { text: 'changed', tone: 'changed', means: 'the catalog changed something, and nothing else had' },
  pending: { text: 'pending', tone: 'warn', means: 'a noop run that would have changed something' },
  unchanged: { text: 'unchanged', tone: 'ok', means: 'nothing was to be done' },
  none: { text: 'never ran', tone: 'calm', means: 'Puppet has not reported from this node' },
};

/** States of jobs, runs, resources and events. */
const others: Record<string, Tone> = {
  queued: 'calm',
  waiting: 'calm',
  sent: 'calm',
  running: 'changed',
  begin: 'calm',
  stopping: 'warn',
  finished: 'ok',
  succeeded: 'ok',
  success: 'changed',
  unchanged: 'ok',
  changed: 'changed',
  noop: 'warn',
  skipped: 'warn',
  stopped: 'warn',
  killed: 'warn',
  offline: 'warn',
  refused: 'bad',
  interrupted: 'bad',
  missing: 'warn',
  timed_out: 'bad',
  errored: 'bad',
  lost: 'bad',
  failed: 'bad',
  failure: 'bad',
  alarm: 'bad',

  // nodes of previews
  same: 'ok',
  reordered: 'ok',
  first: 'calm',
  unable: 'warn',
  // previews
  compiling: 'changed',
  ready: 'ok',
  cancelled: 'warn',
  // releases, their waves and nodes
  waiting_approval: 'warn',
  paused: 'warn',
  done: 'ok',
  done_with_failures: 'bad',
  aborted: 'warn',
  releasing: 'changed',
  rehearsing: 'changed',
  ended: 'ok',
  applying: 'changed',
  ok: 'ok',
  foreign: 'bad',
  superseded: 'warn',
  // code and its deploys
  current: 'ok',
  held: 'warn',
  unknown: 'calm',
  deploying: 'changed',
  complete: 'ok',
  mistake: 'bad',
  warning: 'warn',
  err: 'bad',
  note: 'calm',
  deny: 'bad',
  approve: 'warn',
  warn: 'warn',
  // certificates and people
  requested: 'warn',
  signed: 'ok',
  revoked: 'bad',
  active: 'ok',
  disabled: 'warn',
  locked: 'bad',
  // acts
  started: 'calm',
  denied: 'bad',
  // answers of nodes to an action
  'unknown action': 'bad',
  'missing data': 'bad',
  'invalid data': 'bad',
  error: 'bad',
  'no answer': 'warn',
  left: 'warn',
  'not asked': 'calm',
  'reads only': 'ok',
  'changes nodes': 'warn',
  // what groups give
  member: 'ok',
  apart: 'calm',
  used: 'ok',
  overridden: 'calm',
  outvoted: 'calm',
  conflicting: 'bad',
  create: 'ok',
  update: 'changed',
  delete: 'bad',
  // catalogs
  wanted: 'calm',
  resting: 'warn',
  behind: 'warn',
  applied: 'ok',
  pinned: 'warn',
};

export function wordOf(state: string): Word {
  return runStates[state] ?? { text: state.replaceAll('_', ' '), tone: others[state] ?? 'calm', means: '' };
}

/** What a job does, in a word or two. A run of Puppet needs no other title. */
export function titleOf(job: { title: string; kind: string }): string {
  return job.title ? visible(job.title) : job.kind === 'puppet' ? 'Puppet run' : job.kind;
}

export function count(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

export function many(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? '' : 's'}`;
}

/** A duration as 6m12s. */
export function duration(seconds: number): string {
  if (seconds < 10) return `${Math.max(0, Math.round(seconds * 10) / 10)}s`;
  const s = Math.round(seconds);
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${s % 60 > 0 ? `${s % 60}s` : ''}`;
  if (s < 86_400)
    return `${Math.floor(s / 3600)}h${Math.floor((s % 3600) / 60) > 0 ? `${Math.floor((s % 3600) / 60)}m` : ''}`;
  return `${Math.floor(s / 86_400)}d${Math.floor((s % 86_400) / 3600) > 0 ? `${Math.floor((s % 86_400) / 3600)}h` : ''}`;
}

/** How long ago something was; a clock that is behind the server's makes nothing come from the future. */
export function ago(time: string, now = Date.now()): string {
  const seconds = Math.max(0, (now - Date.parse(time)) / 1000);
  if (seconds < 5) return 'just now';
  const text = seconds < 60 ? `${Math.floor(seconds)}s` : duration(seconds - (seconds % 60));
  return `${text} ago`;
}

/** A word for a shell: quoted where it must be. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A command line of words; undefined ones are left out. */
export function commandLine(...words: (string | false | undefined)[]): string {
  return ['tutti', ...words.filter((w): w is string => Boolean(w))].map(quoted).join(' ');
}

/** The flags of a command line that have a value. */
export function flags(values: Record<string, string | undefined>): string[] {
  return Object.entries(values).flatMap(([flag, value]) => (value ? [`--${flag}`, value] : []));
}

/** Text as people may see it: what would be no sign is written out. */
export function visible(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/g, (c) =>
    c === '\u001b' ? '␛' : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A digest as people name it. */
export function short(digest: string | undefined): string {
  return digest?.slice(0, 12) ?? '–';
}

/** A number of bytes, in the unit that people read it in. */
export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let value = n;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** Names that a person typed, with commas or spaces between them. */
export function listed(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean);
}
