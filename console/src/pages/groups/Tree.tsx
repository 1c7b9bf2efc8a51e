import { useMemo, useState } from 'react';
import type { Group as NodeGroup } from '../../api/client';
import { useAsk } from '../../data/query';
import { useMay } from '../../data/session';
import { groupAddress, Link, useGo, useSearch } from '../../routes/router';
import { DataTable, type Column } from '../../ui/DataTable';
import { Find } from '../../ui/filters';
import { Group, Text } from '../../ui/kit';
import { ActButton, Coming, CommandLine, Empty, Failure, State, Time } from '../../ui/parts';
import { commandLine, count, many, visible } from '../../ui/words';
import { GroupForm } from './Form';
import { below, depths } from './spec';

interface Row {
  g: NodeGroup;
  depth: number;
  children: number;
}

/** What is wrong with a group: it cannot be used, or names what is not there. */
export function Doubts({ g }: { g: NodeGroup }) {
  const doubts = g.warnings ?? [];
  if (g.defect) return <State of="failed">cannot be used</State>;
  if (doubts.length === 0) return null;
  return (
    <span title={doubts.join('\n')}>
      <State of="warning">{many(doubts.length, 'warning')}</State>
    </span>
  );
}

/** The environment that a group gives, and whether it outvotes others. */
export function environmentOf(g: NodeGroup): string {
  return `${g.environment ?? ''}${g.environment_group ? ' (decides)' : ''}`;
}

const columns = (closed: ReadonlySet<string>, toggle: (id: string) => void): Column<Row>[] => [
  {
    key: 'name',
    title: 'Group',
    width: 'minmax(250px, 2fr)',
    cell: ({ g, depth, children }) => (
      <span className="branch" style={{ paddingLeft: depth * 18 }}>
        {children > 0 ? (
          <button
            type="button"
            className="fold"
            aria-expanded={!closed.has(g.id)}
            aria-label={`Groups below ${g.name}`}
            onClick={() => toggle(g.id)}
          >
            {closed.has(g.id) ? '▸' : '▾'}
          </button>
        ) : (
          <span className="fold" />
        )}
        <Link to={groupAddress(g.name)}>{visible(g.name)}</Link>
        <Doubts g={g} />
      </span>
    ),
  },
  {
    key: 'environment',
    title: 'Environment',
    width: 'minmax(130px, 1fr)',
    from: 600,
    cell: ({ g }) => environmentOf(g) || '–',
  },
  {
    key: 'classes',
    title: 'Classes',
    width: '70px',
    end: true,
    cell: ({ g }) => count(Object.keys(g.classes ?? {}).length),
  },
  {
    key: 'pinned',
    title: 'Pinned',
    width: '70px',
    end: true,
    from: 600,
    cell: ({ g }) => count((g.nodes ?? []).length),
  },
  {
    key: 'rule',
    title: 'Rule',
    width: 'minmax(140px, 3fr)',
    from: 900,
    cell: ({ g }) => (
      <span className="mono" title={visible(g.rule_text ?? '')}>
        {visible(g.rule_text ?? '')}
      </span>
    ),
  },
  { key: 'changed', title: 'Changed', width: '100px', from: 1200, cell: ({ g }) => <Time at={g.changed_at} /> },
];

/** The groups as a tree. */
export default function Tree() {
  const [search, change] = useSearch();
  const go = useGo();
  const may = useMay('group:write');
  const asked = useAsk('group.list', {});
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [makes, setMakes] = useState(false);
  const all = useMemo(() => asked.data?.items ?? [], [asked.data]);
  const find = (search.find ?? '').toLowerCase();
  const rows = useMemo(() => {
    const deep = depths(all);
    const children = new Map<string, number>();
    for (const g of all) children.set(g.parent_id, (children.get(g.parent_id) ?? 0) + (g.id === g.parent_id ? 0 : 1));
    const hidden = new Set(find ? [] : [...closed].flatMap((id) => below(all, id).map((g) => g.id)));
    return all
      .filter((g) => !hidden.has(g.id) && (!find || matches(g, find)))
      .map((g) => ({ g, depth: find ? 0 : (deep.get(g.id) ?? 0), children: find ? 0 : (children.get(g.id) ?? 0) }));
  }, [all, closed, find]);
  if (asked.error && !asked.data) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  const toggle = (id: string) =>
    setClosed((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  return (
    <>
      {asked.error && <Failure error={asked.error} again={() => void asked.refetch()} />}
      <Group>
        <ActButton {...may} onClick={() => setMakes(true)}>
          New group…
        </ActButton>
      </Group>
      <Find placeholder="a name, class, rule or pinned node" value={search.find} set={(text) => change({ find: text })}>
        {find ? `${count(rows.length)} of ${many(all.length, 'group')}` : many(all.length, 'group')}
      </Find>
      <DataTable
        label="Groups"
        columns={columns(closed, toggle)}
        rows={rows}
        rowKey={(r) => r.g.id}
        whole
        onOpen={(r) => go(groupAddress(r.g.name))}
        empty={
          <Empty title="No group is like that">
            <button type="button" className="as-link" onClick={() => change({ find: '' })}>
              Show all groups
            </button>
          </Empty>
        }
      />
      {!find && all.length === 1 && (
        <Text size="sm">
          There is only the group that every node is in. A group below it gives some nodes an environment, classes and
          values.
        </Text>
      )}
      {makes && <GroupForm groups={all} close={() => setMakes(false)} />}
      <CommandLine line={commandLine('group', 'list')} />
    </>
  );
}

/** Whether a text is in what somebody may look for. */
function matches(g: NodeGroup, find: string): boolean {
  return [g.name, g.environment ?? '', g.rule_text ?? '', ...Object.keys(g.classes ?? {}), ...(g.nodes ?? [])].some(
    (text) => text.toLowerCase().includes(find),
  );
}
