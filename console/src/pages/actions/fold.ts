// Answers of many nodes: the same ones together, and what they sum up to. The command line does the same (internal/action).
import type { ActionAnswer, ActionSum } from '../../api/client';

/** Nodes that gave the same answer. */
export interface Same {
  state: string;
  message: string;
  data: unknown;
  nodes: string[];
}

/** JSON in one form: the order of keys does not count. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, v: unknown) =>
    typeof v === 'object' && v !== null && !Array.isArray(v)
      ? Object.fromEntries(Object.entries(v).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : v,
  );
}

/** Puts answers with those that came before; what was there is left as it is. */
export function folded(before: ReadonlyMap<string, Same>, answers: ActionAnswer[]): Map<string, Same> {
  const groups = new Map(before);
  const fresh = new Set<string>();
  for (const a of answers) {
    const key = canonical([a.state, a.message ?? '', a.data ?? null]);
    const group = groups.get(key);
    if (group && fresh.has(key)) {
      group.nodes.push(a.node);
      continue;
    }
    fresh.add(key);
    groups.set(key, {
      state: a.state,
      message: a.message ?? '',
      data: a.data,
      nodes: [...(group?.nodes ?? []), a.node],
    });
  }
  return groups;
}

/** The largest group first, then by the first node. */
export function sorted(groups: Iterable<Same>): Same[] {
  return [...groups]
    .map((g) => ({ ...g, nodes: g.nodes.toSorted() }))
    .toSorted((a, b) => b.nodes.length - a.nodes.length || (a.nodes[0]! < b.nodes[0]! ? -1 : 1));
}

/** How many nodes ended in each state. */
export function counted(groups: Iterable<Same>): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const g of groups) counts[g.state] = (counts[g.state] ?? 0) + g.nodes.length;
  return counts;
}

const numeric = ['average', 'sum', 'distribution'];

/** A value as people read it. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The places of a format that actions may have, as printf fills them. */
export function printed(format: string, ...values: (string | number)[]): string {
  let at = 0;
  return format.replace(
    /%([-+0]*)(\d*)(?:\.(\d+))?([sdfgv%])/g,
    (_, how: string, width: string, digits, kind: string) => {
      if (kind === '%') return '%';
      const value = values[at++] ?? '';
      let text = String(value);
      if (kind === 'f') text = Number(value).toFixed(digits === undefined ? 6 : Number(digits));
      else if (kind === 'd') text = String(Math.trunc(Number(value)));
      const fill = how.includes('0') && !how.includes('-') ? '0' : ' ';
      return how.includes('-') ? text.padEnd(Number(width)) : text.padStart(Number(width), fill);
    },
  );
}

/** What the answers of nodes that did it sum up to, one thing a line; the most frequent value is first. */
export function summed(sum: ActionSum, groups: Iterable<Same>): string[] {
  const values = new Map<string, number>();
  const numbers: [number, number][] = []; // a number, and how many nodes have it
  for (const g of groups) {
    if (g.state !== 'ok' || typeof g.data !== 'object' || g.data === null) continue;
    const value = (g.data as Record<string, unknown>)[sum.field];
    if (value === undefined || value === null) continue;
    if (numeric.includes(sum.function)) {
      if (typeof value === 'number') numbers.push([value, g.nodes.length]);
    } else if (sum.function !== 'boolean_summary' || typeof value === 'boolean') {
      const name = textOf(value);
      const label = sum.function === 'boolean_summary' ? sum.labels?.[name] || name : name;
      values.set(label, (values.get(label) ?? 0) + g.nodes.length);
    }
  }
  if (!numeric.includes(sum.function)) {
    const widest = [...values.keys()].reduce((most, value) => Math.max(most, Math.min(value.length, 80)), 0);
    return [...values]
      .toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
      .map(([value, n]) => (sum.format ? printed(sum.format, value, n) : `${value.padStart(widest)} = ${n}`));
  }
  if (numbers.length === 0) return [];
  const total = numbers.reduce((t, [n, times]) => t + n * times, 0);
  const times = numbers.reduce((t, [, n]) => t + n, 0);
  if (sum.function === 'average') return [printed(sum.format || 'Average: %.3f', total / times)];
  if (sum.function === 'sum') return [printed(sum.format || 'Total: %.3f', total)];
  return [chart(numbers)];
}

const bars = [...' ▁▂▃▄▅▆▇█'];
const buckets = 20;

function chart(numbers: [number, number][]): string {
  const least = Math.min(...numbers.map(([n]) => n));
  const most = Math.max(...numbers.map(([n]) => n));
  const counts = Array.from({ length: buckets }, () => 0);
  for (const [n, times] of numbers) {
    const at = most === least ? 0 : Math.min(Math.trunc(((n - least) / (most - least)) * buckets), buckets - 1);
    counts[at]! += times;
  }
  const top = Math.max(...counts, 1);
  const line = counts.map((n) => bars[Math.ceil((n / top) * (bars.length - 1))]).join('');
  return `${line}  min: ${least}  max: ${most}`;
}
