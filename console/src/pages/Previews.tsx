import type { Preview } from '../api/client';
import { useList } from '../data/query';
import { useMay } from '../data/session';
import { Link, useGo, useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Group, Text, useDisclosure } from '../ui/kit';
import { ActButton, CommandLine, Empty, Page, State, Time } from '../ui/parts';
import { commandLine, count, flags, short, visible } from '../ui/words';
import { EnvironmentChoice } from './change/Environment';
import { PreviewDialog } from './change/PreviewDialog';
import { ListOf } from './ListOf';

const columns: Column<Preview>[] = [
  {
    key: 'id',
    title: 'Preview',
    width: '64px',
    end: true,
    cell: (p) => (
      <Link to={`/previews/${p.id}`} label={`Preview ${p.id}`}>
        {p.id}
      </Link>
    ),
  },
  { key: 'state', title: 'State', width: '110px', cell: (p) => <State of={p.state} /> },
  {
    key: 'about',
    title: 'What',
    width: 'minmax(110px, 2fr)',
    cell: (p) => {
      const text = visible(p.description || p.commit || short(p.version));
      return <span title={text}>{text}</span>;
    },
  },
  { key: 'environment', title: 'Environment', width: 'minmax(90px, 1fr)', from: 900, cell: (p) => p.environment },
  { key: 'nodes', title: 'Nodes', width: '70px', end: true, from: 600, cell: (p) => count(p.nodes) },
  { key: 'change', title: 'Change', width: '70px', end: true, from: 600, cell: (p) => count(p.counts?.changed ?? 0) },
  {
    key: 'fail',
    title: 'Fail',
    width: '60px',
    end: true,
    from: 600,
    cell: (p) => {
      const bad = p.counts?.failed ?? 0;
      return <span className={bad > 0 ? 'many-bad' : undefined}>{count(bad)}</span>;
    },
  },
  { key: 'by', title: 'By', width: 'minmax(80px, 1fr)', from: 900, cell: (p) => p.author },
  { key: 'at', title: 'Asked for', width: '100px', from: 600, cell: (p) => <Time at={p.created_at} /> },
];

/** Previews, newest first. */
export function Previews() {
  const [search, change] = useSearch();
  const go = useGo();
  const filter = { environment: search.environment, state: search.state };
  const some = Object.values(filter).some(Boolean);
  const list = useList('preview.list', filter, { every: 10_000 });
  const [opened, dialog] = useDisclosure();
  const may = useMay('preview:create');
  return (
    <Page
      title="Previews"
      name="Previews"
      actions={
        <ActButton {...may} onClick={dialog.open}>
          Preview…
        </ActButton>
      }
    >
      {opened && <PreviewDialog environment={search.environment || 'production'} close={dialog.close} />}
      <Group gap="xs" className="filters">
        <EnvironmentChoice value={search.environment} set={(environment) => change({ environment })} />
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={['compiling', 'ready', 'cancelled']}
          value={search.state}
          set={(state) => change({ state })}
        />
      </Group>
      <ListOf
        label="Previews"
        columns={columns}
        list={list}
        rowKey={(p) => p.id}
        onOpen={(p) => go(`/previews/${p.id}`)}
        empty={
          some ? (
            <Empty title="No preview is like that">
              <Button variant="default" size="xs" onClick={() => change({ environment: '', state: '' })}>
                Show all previews
              </Button>
            </Empty>
          ) : (
            <Empty title="No previews yet">
              <Text size="sm">A preview says what code would change on which nodes, before it does.</Text>
              <CommandLine line="tutti preview create production --ref ./control-repo" />
            </Empty>
          )
        }
      />
      <CommandLine line={commandLine('preview', 'list', ...flags(filter))} />
    </Page>
  );
}
