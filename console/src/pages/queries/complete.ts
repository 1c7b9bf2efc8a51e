// Values that may stand behind a comparison: which question to the inventory gives them. Words of the language are the server's.

/** What is written at the end of a query is a value, or a path of facts, as far as it goes. */
export type Wanted =
  | { kind: 'values'; query: string; column: string; begun: string }
  | { kind: 'paths'; begun: string } // facts.os.fa
  | undefined;

const most = 40;

/** A text in double quotes, as PQL has it. */
const quote = (text: string) => JSON.stringify(text);

/** The steps of a path behind facts: os."a.b".c */
export function stepsIn(path: string): string[] {
  return [...path.matchAll(/"((?:[^"\\]|\\.)*)"|([^."]+)/g)].map((m) =>
    m[1] !== undefined ? m[1].replaceAll(/\\(.)/g, '$1') : m[2]!,
  );
}

export function wantedAt(before: string): Wanted {
  const path = /(?:^|[\s({[,])(facts(?:\.(?:"[^"]*"|[\w:-]+))*\.?[\w:-]*)$/.exec(before)?.[1];
  if (path?.startsWith('facts.')) return { kind: 'paths', begun: path };
  const compared = /(facts(?:\.(?:"[^"]*"|[\w:-]+))+|\w+)\s*=\s*("[^"]*)?$/.exec(before);
  if (!compared) return undefined;
  const [, field, begun = ''] = compared;
  const prefix = begun.slice(1);
  const values = (query: string, column: string): Wanted => ({ kind: 'values', query, column, begun });
  if (field!.startsWith('facts.')) {
    const steps = stepsIn(field!.slice('facts.'.length));
    return values(
      `fact_contents[value, count()]{path = ${JSON.stringify(steps)} group by value order by count() desc limit ${most}}`,
      'value',
    );
  }
  switch (field) {
    case 'certname': {
      const like = prefix.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
      return values(`nodes[certname]{certname ~ ${quote(`^${like}`)} order by certname limit ${most}}`, 'certname');
    }
    case 'environment':
    case 'catalog_environment':
    case 'report_environment':
    case 'facts_environment':
      return values('environments[name]{order by name}', 'name');
    case 'latest_report_status':
      return values(`nodes[latest_report_status, count()]{group by latest_report_status}`, 'latest_report_status');
  }
  return undefined;
}

/** The paths of facts that go on from what is written, one step further. */
export function stepsAfter(begun: string, paths: (string | number)[][]): string[] {
  const at = Math.max(begun.lastIndexOf('.'), 'facts'.length);
  const done = stepsIn(begun.slice('facts.'.length, Math.max(at, 'facts.'.length)));
  const typed = begun.slice(at + 1);
  const found = new Set<string>();
  for (const path of paths) {
    if (path.length <= done.length || !done.every((step, i) => String(path[i]) === step)) continue;
    const next = path[done.length]!;
    if (typeof next === 'number' || !next.startsWith(typed)) continue;
    found.add(`${begun.slice(0, at)}.${/^[\w:-]+$/.test(next) ? next : quote(next)}`);
  }
  return [...found].toSorted().slice(0, most);
}

/** Whether a text is a query, not a condition on nodes. */
export function isQuery(text: string): boolean {
  return /^\s*(?:\w+\s*[[{]|\[|from\b)/.test(text);
}

/** The columns of an answer in a table: the first ones also in narrow windows. */
export function roomOf(at: number): 600 | 900 | 1200 | undefined {
  if (at < 2) return undefined;
  return at < 4 ? 600 : at < 6 ? 900 : 1200;
}

/** Rows as comma-separated values. */
export function csvOf(columns: string[], rows: Record<string, unknown>[]): string {
  const cell = (value: unknown) => {
    const text = value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows.map((row) => columns.map((c) => row[c]))]
    .map((line) => `${line.map(cell).join(',')}\r\n`)
    .join('');
}
