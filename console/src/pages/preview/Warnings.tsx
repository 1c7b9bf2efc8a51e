import { useAsk } from '../../data/query';
import { Table, Text } from '../../ui/kit';
import { Coming, Empty, Failure, Place, State } from '../../ui/parts';
import { count, many, visible } from '../../ui/words';

/** What the compiler warns of in a preview's catalogs, what is new first. */
export default function Warnings({ id }: { id: string }) {
  const asked = useAsk('preview.warnings', { preview: id });
  if (asked.error) return <Failure error={asked.error} again={() => void asked.refetch()} />;
  if (!asked.data) return <Coming />;
  const items = asked.data.items ?? [];
  return (
    <div className="page-scroll">
      {items.length === 0 ? (
        <Empty title="The compiler warns of nothing" />
      ) : (
        <Table aria-label="Warnings">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>What</Table.Th>
              <Table.Th>Warning</Table.Th>
              <Table.Th>Place</Table.Th>
              <Table.Th ta="right">Nodes</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {items.map((w, i) => (
              <Table.Tr key={i}>
                <Table.Td>
                  <State of={w.level}>{w.new ? `new ${w.level}` : w.level}</State>
                </Table.Td>
                <Table.Td>{visible(w.message)}</Table.Td>
                <Table.Td>
                  <Place file={w.file} line={w.line} />
                </Table.Td>
                <Table.Td ta="right" className="count" title={(w.examples ?? []).join(', ')}>
                  {count(w.nodes)}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      {asked.data.unknown > 0 && (
        <Text size="sm" c="dimmed">
          Of {many(asked.data.unknown, 'node')} nobody knows any more what was written for the catalog.
        </Text>
      )}
    </div>
  );
}
