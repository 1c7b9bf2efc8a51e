import { useMemo, useState } from 'react';
import type { ResourceComparison } from '../api/client';
import { useAsk } from '../data/query';
import { Link, nodeAddress, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Button, Group, Text, TextInput } from '../ui/kit';
import { Coming, CommandLine, Empty, Failure, Page } from '../ui/parts';
import { commandLine, count, flags, many, visible } from '../ui/words';
import { Crumbs } from './Crumbs';

const largest = (r: ResourceComparison) => Math.max(0, ...(r.variants ?? []).map((v) => v.nodes));

const columns = (open: (r: ResourceComparison) => void): Column<ResourceComparison>[] => [
  {
    key: 'title',
    title: 'Title',
    width: 'minmax(140px, 3fr)',
    order: 'title',
    cell: (r) => (
      <button type="button" className="as-link" onClick={() => open(r)}>
        {visible(r.title)}
      </button>
    ),
  },
  {
    key: 'variants',
    title: 'Variants',
    width: '92px',
    end: true,
    order: 'variants',
    cell: (r) => count((r.variants ?? []).length),
  },
  { key: 'nodes', title: 'Nodes', width: '80px', end: true, order: 'nodes', cell: (r) => count(r.nodes) },
  {
    key: 'most',
    title: 'Most have',
    width: '90px',
    end: true,
    from: 600,
    cell: (r) => `${Math.round((100 * largest(r)) / Math.max(1, r.nodes))} %`,
  },
  {
    key: 'differing',
    title: 'What differs',
    width: 'minmax(120px, 2fr)',
    from: 600,
    cell: (r) => <span className="mono">{(r.differing ?? []).join(', ')}</span>,
  },
];

/** The resources of one type in the newest catalogs, and in how many forms nodes have each. */
export function Resources() {
  const [search, change] = useSearch();
  const type = search.type || 'File';
  const filter = { where: search.where };
  return (
    <Page
      title={search.title ? visible(`${type}[${search.title}]`) : 'Resources'}
      name="Resources"
      above={
        search.title ? (
          <Crumbs to="/resources" search={{ type, where: search.where }} of={`Resources, ${type}`}>
            {visible(search.title)}
          </Crumbs>
        ) : undefined
      }
    >
      {search.title ? (
        <Variants type={type} title={search.title} where={search.where} />
      ) : (
        <>
          <Filters key={`${type} ${search.where ?? ''}`} type={type} where={search.where ?? ''} change={change} />
          <List type={type} />
        </>
      )}
      <CommandLine line={commandLine('resource', 'variants', type, search.title, ...flags(filter))} />
    </Page>
  );
}

function Filters(props: {
  type: string;
  where: string;
  change: (search: Record<string, string>, replace?: boolean) => void;
}) {
  const [type, setType] = useState(props.type);
  const [where, setWhere] = useState(props.where);
  return (
    <form
      onSubmit={(e) => {
        e.preventDefault();
        props.change({ type: type === 'File' ? '' : type, where, find: '' }, false);
      }}
    >
      <Group gap="xs" align="flex-end" className="filters">
        <TextInput
          label="Type"
          w={150}
          list="types"
          value={type}
          onChange={(e) => setType(e.currentTarget.value.trim())}
        />
        <datalist id="types">
          {['File', 'Package', 'Service', 'User', 'Group', 'Cron', 'Exec', 'Class'].map((t) => (
            <option key={t} value={t}>
              {t}
            </option>
          ))}
        </datalist>
        <TextInput
          label="Condition"
          placeholder={'facts.os.family = "Debian"'}
          style={{ flex: '1 1 240px' }}
          value={where}
          onChange={(e) => setWhere(e.currentTarget.value)}
        />
        <Button type="submit" variant="default">
          Show
        </Button>
      </Group>
    </form>
  );
}

function List({ type }: { type: string }) {
  const [search, change] = useSearch();
  const asked = useAsk('resource.variants', { type, where: search.where });
  const find = (search.find ?? '').toLowerCase();
  const order = search.order ?? '-variants';
  const all = asked.data?.items;
  const rows = useMemo(() => {
    const value = (r: ResourceComparison) =>
      order.endsWith('variants') ? (r.variants ?? []).length : order.endsWith('nodes') ? r.nodes : r.title;
    const found = (all ?? []).filter((r) => !find || r.title.toLowerCase().includes(find));
    const way = order.startsWith('-') ? -1 : 1;
    return found.toSorted((a, b) => {
      const [x, y] = [value(a), value(b)];
      return (x < y ? -way : x > y ? way : 0) || (a.title < b.title ? -1 : 1);
    });
  }, [all, find, order]);
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  return (
    <>
      <Group gap="md" align="flex-end">
        <TextInput
          data-filter
          label="Find"
          placeholder="/etc/motd"
          style={{ flex: '1 1 200px' }}
          value={search.find ?? ''}
          onChange={(e) => change({ find: e.currentTarget.value })}
        />
        <Text component="output" size="sm" pb={8}>
          {count(rows.length)} of {many(all?.length ?? 0, 'title')}
        </Text>
      </Group>
      <DataTable
        label={`Resources of type ${type}`}
        columns={columns((r) => change({ title: r.title }, false))}
        rows={rows}
        rowKey={(r) => r.title}
        whole
        order={order}
        onOrder={(next) => change({ order: next === '-variants' ? '' : next })}
        onOpen={(r) => change({ title: r.title }, false)}
        empty={
          <Empty title={`No catalog has a ${type} like that`}>
            <Text size="sm">Types are written as in code: File, Package, My::Type.</Text>
          </Empty>
        }
      />
    </>
  );
}

/** The forms in which nodes have a resource, side by side; the parameters that differ come first. */
function Variants({ type, title, where }: { type: string; title: string; where?: string }) {
  const asked = useAsk('resource.variants', { type, title, where });
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  const one = asked.data.items?.[0];
  if (!one) {
    return (
      <div className="page-scroll">
        <Empty title="No catalog has it">
          <Text size="sm">It may have been there: the newest catalogs are asked.</Text>
        </Empty>
      </div>
    );
  }
  const variants = one.variants ?? [];
  const parametersOf = (v: (typeof variants)[number]) => (v.parameters ?? {}) as Record<string, unknown>;
  const differing = one.differing ?? [];
  const names = [...new Set([...differing, ...variants.flatMap((v) => Object.keys(parametersOf(v)).toSorted())])];
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="Variants" tabIndex={0}>
      <Text size="sm" mb="xs">
        {many(one.nodes, 'node')} have it in {many(variants.length, 'variant')}
      </Text>
      <table className="variants">
        <thead>
          <tr>
            <th scope="col">Parameter</th>
            {variants.map((v, i) => (
              <th scope="col" key={i}>
                {many(v.nodes, 'node')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name} data-differs={differing.includes(name)}>
              <th scope="row" className="mono">
                {differing.includes(name) ? '≠ ' : ''}
                {visible(name)}
              </th>
              {variants.map((v, i) => {
                const value = parametersOf(v)[name];
                return (
                  <td key={i}>
                    {value === undefined ? (
                      <Text span size="sm" c="dimmed">
                        not set
                      </Text>
                    ) : (
                      <pre className="output">
                        {visible(typeof value === 'string' ? value : JSON.stringify(value, null, 1))}
                      </pre>
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
          <tr>
            <th scope="row">On</th>
            {variants.map((v, i) => (
              <td key={i}>
                {(v.examples ?? []).map((node, n) => (
                  <span key={node}>
                    {n > 0 && ', '}
                    <Link to={nodeAddress(node)}>{node}</Link>
                  </span>
                ))}
                {v.nodes > (v.examples ?? []).length && ' …'}
              </td>
            ))}
          </tr>
        </tbody>
      </table>
    </section>
  );
}
