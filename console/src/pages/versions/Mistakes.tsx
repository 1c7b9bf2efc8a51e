import type { CodeStatus } from '../../api/client';
import { Link, nodeAddress } from '../../routes/router';
import { Stack, Table, Text, Title } from '../../ui/kit';
import { Empty, Place, State, Time } from '../../ui/parts';
import { count, many, visible } from '../../ui/words';

/** What is wrong in the current version: what does not compile, and what its check found, with file and line. */
export default function Mistakes({ s }: { s: CodeStatus }) {
  const errors = s.errors ?? [];
  const findings = s.check?.findings ?? [];
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="Mistakes" tabIndex={0}>
      <Stack gap="md">
        {errors.length > 0 && (
          <section className="card bad-card" aria-labelledby="errors">
            <Title order={2} id="errors" mb="xs">
              Does not compile
            </Title>
            <Stack gap="sm">
              {errors.map((e, i) => (
                <div key={i}>
                  <pre className="output">{visible(e.message)}</pre>
                  <Text size="sm" component="div">
                    <Place file={e.file} line={e.line} />, {many(e.nodes, 'node')}:{' '}
                    {(e.names ?? []).map((name, n) => (
                      <span key={name}>
                        {n > 0 && ', '}
                        <Link to={nodeAddress(name)}>{name}</Link>
                      </span>
                    ))}
                    {e.nodes > (e.names ?? []).length && ' …'}
                  </Text>
                </div>
              ))}
            </Stack>
          </section>
        )}
        {s.check ? (
          <section className="card" aria-labelledby="check">
            <Title order={2} id="check" mb={4}>
              The check before the deploy
            </Title>
            <Text size="sm" mb="xs">
              {many(s.check.files, 'file')} read, {many(s.check.compiled + (s.check.more ?? 0), 'node')} compiled for{' '}
              <Time at={s.check.at} />. {many(s.check.mistakes, 'mistake')}, {many(s.check.warnings, 'warning')} of
              which {count(s.check.new_warnings)} new.
              {s.check.forced && ' Somebody deployed it in spite of that.'}
            </Text>
            {findings.length > 0 && (
              <Table aria-label="Findings">
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>What</Table.Th>
                    <Table.Th>Place</Table.Th>
                    <Table.Th>Finding</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {findings.map((f, i) => (
                    <Table.Tr key={i}>
                      <Table.Td>
                        <State of={f.level}>{f.new ? `new ${f.level}` : f.level}</State>
                      </Table.Td>
                      <Table.Td>
                        <Place file={f.file} line={f.line} />
                      </Table.Td>
                      <Table.Td title={(f.nodes ?? []).join(', ')}>{visible(f.message)}</Table.Td>
                    </Table.Tr>
                  ))}
                </Table.Tbody>
              </Table>
            )}
            {(s.check.cut ?? 0) > 0 && <Text size="sm">and {count(s.check.cut!)} more</Text>}
          </section>
        ) : (
          errors.length === 0 && (
            <Empty title="Nothing is known to be wrong">
              <Text size="sm">The version was deployed without a check, and it compiles for the nodes.</Text>
            </Empty>
          )
        )}
      </Stack>
    </section>
  );
}
