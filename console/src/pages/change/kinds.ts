import type { PreviewChange } from '../../api/client';

/** Changes that are the same but for values: what people read as one. */
export interface Kind {
  key: string; // of the first of them
  first: PreviewChange;
  keys: string[];
  nodes: number;
  changes: PreviewChange[];
}

/** Puts changes together that differ in their values only. The order stays. */
export function kindsOf(changes: PreviewChange[]): Kind[] {
  const kinds = new Map<string, Kind>();
  for (const c of changes) {
    const alike = JSON.stringify([
      c.change,
      c.type,
      c.title,
      c.parameters,
      c.message,
      c.exported,
      c.order_only,
      Boolean(c.engine_noise),
    ]);
    const kind = kinds.get(alike);
    if (kind) {
      kind.keys.push(c.key);
      kind.changes.push(c);
      kind.nodes += c.nodes;
    } else {
      kinds.set(alike, { key: c.key, first: c, keys: [c.key], nodes: c.nodes, changes: [c] });
    }
  }
  return [...kinds.values()];
}

/** What a change is about, in one line. */
export function subjectOf(c: PreviewChange): string {
  if (c.change === 'error') return c.message ?? 'does not compile';
  if (c.change === 'lost-all' || c.change === 'lost-most')
    return c.message ?? `${c.change.replace('-', ' ')} resources`;
  const name = c.type ? `${c.exported ? '@@' : ''}${c.type}[${c.title}]` : (c.title ?? c.change);
  const what = (c.parameters ?? []).join(', ');
  return what ? `${name} ${what}` : name;
}
