import { useMemo } from 'react';
import { useAsk } from '../../data/query';
import { Link, useSearch } from '../../routes/router';
import { Find } from '../../ui/filters';
import { Text } from '../../ui/kit';
import { Coming, Empty, Failure, Time } from '../../ui/parts';
import { visible } from '../../ui/words';

type Value = unknown;

/** Keeps what has the text in its path or value; undefined: nothing has. */
export function found(value: Value, text: string, path = ''): Value {
  if (!text || path.toLowerCase().includes(text)) return value;
  if (Array.isArray(value)) {
    const kept = value.map((v, i) => found(v, text, `${path}.${i}`)).filter((v) => v !== undefined);
    return kept.length > 0 ? kept : undefined;
  }
  if (value !== null && typeof value === 'object') {
    const kept = Object.entries(value)
      .map(([k, v]) => [k, found(v, text, path ? `${path}.${k}` : k)] as const)
      .filter(([, v]) => v !== undefined);
    return kept.length > 0 ? Object.fromEntries(kept) : undefined;
  }
  return String(value).toLowerCase().includes(text) ? value : undefined;
}

/** A condition that holds for nodes with the same value. */
export function condition(path: string[], value: Value): string | undefined {
  const simple = path.every((p) => /^\w+$/.test(p));
  if (!simple || (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean'))
    return undefined;
  return `facts.${path.join('.')} = ${JSON.stringify(value)}`;
}

/** The node's newest facts as a tree; a value leads to the nodes that have it, too. */
export default function Facts({ name }: { name: string }) {
  const [search, change] = useSearch();
  const facts = useAsk('node.facts', { name });
  const text = (search.find ?? '').toLowerCase();
  const shown = useMemo(() => found(facts.data?.values, text), [facts.data, text]);
  if (facts.error) return <Failure error={facts.error} again={() => void facts.refetch()} />;
  if (!facts.data) return <Coming />;
  return (
    <>
      <Find placeholder="os.family" value={search.find} set={(find) => change({ find })}>
        received <Time at={facts.data.received_at} />
      </Find>
      <div className="page-scroll facts card">
        {shown === undefined ? (
          <Empty title="No fact is like that" />
        ) : (
          <Branch value={shown} path={[]} open={text !== ''} />
        )}
      </div>
    </>
  );
}

function Branch({ value, path, open }: { value: Value; path: string[]; open: boolean }) {
  if (value === null || typeof value !== 'object') return <Leaf value={value} path={path} />;
  const entries = Array.isArray(value) ? value.map((v, i) => [String(i), v] as const) : Object.entries(value);
  return (
    <ul>
      {entries.map(([key, v]) =>
        v !== null && typeof v === 'object' ? (
          <li key={key}>
            <details open={open}>
              <summary>
                {visible(key)}{' '}
                <Text span size="sm" c="dimmed">
                  {Object.keys(v as object).length}
                </Text>
              </summary>
              <Branch value={v} path={[...path, key]} open={open} />
            </details>
          </li>
        ) : (
          <li key={key}>
            {visible(key)}: <Leaf value={v} path={[...path, key]} />
          </li>
        ),
      )}
    </ul>
  );
}

function Leaf({ value, path }: { value: Value; path: string[] }) {
  const text = visible(String(value));
  const where = condition(path, value);
  if (!where) return <span className="mono">{text}</span>;
  return (
    <Link to="/nodes" search={{ where }} className="plain mono" label={`${text}: nodes with this value`}>
      {text}
    </Link>
  );
}
