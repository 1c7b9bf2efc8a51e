import type { Grant, Role } from '../../api/client';
import { useList } from '../../data/query';
import { useSearch } from '../../routes/router';
import type { Column } from '../../ui/DataTable';
import { Modal, Table, Text } from '../../ui/kit';
import { CommandLine, Empty } from '../../ui/parts';
import { commandLine, count, visible } from '../../ui/words';
import { ListOf } from '../ListOf';

const columns = (open: (r: Role) => void): Column<Role>[] => [
  {
    key: 'name',
    title: 'Role',
    width: 'minmax(120px, 1fr)',
    cell: (r) => (
      <button type="button" className="as-link" aria-label={`Open ${r.name}`} onClick={() => open(r)}>
        {r.name}
      </button>
    ),
  },
  {
    key: 'description',
    title: 'What it is for',
    width: 'minmax(140px, 3fr)',
    cell: (r) => <span title={r.description}>{visible(r.description ?? '')}</span>,
  },
  { key: 'grants', title: 'Grants', width: '70px', end: true, from: 600, cell: (r) => count((r.grants ?? []).length) },
  { key: 'of', title: 'Of', width: '110px', from: 600, cell: (r) => (r.built_in ? 'Tutti' : (r.changed_by ?? '–')) },
];

/** Where a grant holds; nothing: everywhere. */
export function scopeOf(g: Grant): string {
  return [
    g.environments?.length && `environments ${g.environments.join(', ')}`,
    g.nodes && `nodes where ${g.nodes}`,
    g.tasks?.length && `tasks ${g.tasks.join(', ')}`,
    g.actions?.length && `actions ${g.actions.join(', ')}`,
  ]
    .filter(Boolean)
    .join('; ');
}

/** Roles, and what each allows. */
export default function Roles() {
  const [search, change] = useSearch();
  const list = useList('role.list', {});
  const shown = list.rows.find((r) => r.name === search.name);
  const open = (r: Role) => change({ name: r.name }, false);
  return (
    <>
      <ListOf
        label="Roles"
        list={list}
        columns={columns(open)}
        rowKey={(r) => r.name}
        onOpen={open}
        empty={<Empty title="There are no roles" />}
      />
      <Modal
        opened={shown !== undefined}
        onClose={() => change({ name: '' }, false)}
        size="lg"
        title={shown ? `What ${shown.name} allows` : ''}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {shown && (
          <>
            <Text size="sm">{visible(shown.description ?? '')}</Text>
            <Table aria-label="Grants" mt="xs">
              <Table.Thead>
                <Table.Tr>
                  <Table.Th>Permission</Table.Th>
                  <Table.Th>Where</Table.Th>
                </Table.Tr>
              </Table.Thead>
              <Table.Tbody>
                {(shown.grants ?? []).map((g, i) => (
                  <Table.Tr key={i}>
                    <Table.Td className="mono">{g.permission === '*' ? 'everything' : g.permission}</Table.Td>
                    <Table.Td>{visible(scopeOf(g)) || 'everywhere'}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </>
        )}
      </Modal>
      <CommandLine line={shown ? commandLine('role', 'show', shown.name) : commandLine('role', 'list')} />
    </>
  );
}
