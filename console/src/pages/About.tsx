import { useAsk } from '../data/query';
import { mayDo, useSession } from '../data/session';
import { SimpleGrid, Table, Text, Title } from '../ui/kit';
import { Coming, CommandLine, Failure, Page, State, Time } from '../ui/parts';
import { bytes, visible } from '../ui/words';

/** What runs here: versions, what is stored, the Puppet installations that compile. */
export function About() {
  const { session } = useSession();
  const build = useAsk('version.show', {});
  return (
    <Page title="About" name="About">
      {/* What scrolls must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <section className="page-scroll" aria-label="What runs here" tabIndex={0}>
        <SimpleGrid cols={{ base: 1, lg: 2 }}>
          <section className="card" aria-labelledby="server">
            <Title order={2} id="server" mb="xs">
              The server
            </Title>
            {build.error && <Failure error={build.error} again={() => void build.refetch()} />}
            {build.isPending && !build.error && <Coming lines={3} />}
            {build.data && (
              <dl className="pairs">
                <dt>Tutti</dt>
                <dd>{build.data.version}</dd>
                <dt>Commit</dt>
                <dd className="mono">{build.data.commit ?? 'not known'}</dd>
                <dt>Built</dt>
                <dd>{build.data.date ?? 'not known'}</dd>
                <dt>Go</dt>
                <dd>
                  {build.data.go}, {build.data.platform}
                </dd>
              </dl>
            )}
          </section>
          <section className="card" aria-labelledby="you">
            <Title order={2} id="you" mb="xs">
              You
            </Title>
            <dl className="pairs">
              <dt>Name</dt>
              <dd>{session?.name}</dd>
              <dt>Roles</dt>
              <dd>{(session?.roles ?? []).join(', ') || 'none'}</dd>
              {session?.narrowed_to?.length ? (
                <>
                  <dt>Narrowed to</dt>
                  <dd>{session.narrowed_to.join(', ')}</dd>
                </>
              ) : null}
              <dt>Login ends</dt>
              <dd>{session?.expires_at ? session.expires_at.slice(0, 16).replace('T', ' ') : 'not by itself'}</dd>
            </dl>
          </section>
          {mayDo(session, 'metrics:read') && <Stored />}
          {mayDo(session, 'code:read') && <Engines />}
        </SimpleGrid>
      </section>
      <CommandLine line="tutti version" />
    </Page>
  );
}

function Stored() {
  const usage = useAsk('server.usage', {});
  if (usage.error) return <Failure error={usage.error} again={() => void usage.refetch()} />;
  if (!usage.data) return <Coming lines={3} />;
  const u = usage.data;
  return (
    <section className={`card ${u.disk.read_only ? 'bad-card' : ''}`} aria-labelledby="stored">
      <Title order={2} id="stored" mb="xs">
        What is stored
      </Title>
      <Text size="sm">
        {bytes(u.bytes)}, {bytes(u.disk.free_bytes)} free
        {u.disk.full_at && `; full on ${u.disk.full_at.slice(0, 10)} if it grows like this`}. Measured{' '}
        <Time at={u.at} />.
      </Text>
      {u.disk.read_only && <State of="failed">the disk is full: nothing is stored</State>}
      <Table aria-label="Areas" mt={4}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Area</Table.Th>
            <Table.Th ta="right">Size</Table.Th>
            <Table.Th ta="right">A day</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {(u.areas ?? []).map((a) => (
            <Table.Tr key={a.area}>
              <Table.Td>{visible(a.area)}</Table.Td>
              <Table.Td ta="right" className="count">
                {bytes(a.bytes)}
              </Table.Td>
              <Table.Td ta="right" className="count">
                {a.growth_per_day === undefined
                  ? '–'
                  : `${a.growth_per_day < 0 ? '−' : '+'}${bytes(Math.abs(a.growth_per_day))}`}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

function Engines() {
  const engines = useAsk('engine.list', {});
  if (engines.error) return <Failure error={engines.error} again={() => void engines.refetch()} />;
  if (!engines.data) return <Coming lines={3} />;
  return (
    <section className="card" aria-labelledby="engines">
      <Title order={2} id="engines" mb="xs">
        What compiles
      </Title>
      <Table aria-label="Puppet installations">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Name</Table.Th>
            <Table.Th>Puppet</Table.Th>
            <Table.Th>Ruby</Table.Th>
            <Table.Th>Environments</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {(engines.data.items ?? []).map((e) => (
            <Table.Tr key={e.name}>
              <Table.Td>
                {e.name}
                {e.default && ' (default)'}
                {e.trouble && (
                  <div>
                    <State of="failed">{visible(e.trouble)}</State>
                  </div>
                )}
              </Table.Td>
              <Table.Td>
                {e.by} {e.puppet}
              </Table.Td>
              <Table.Td>{e.ruby}</Table.Td>
              <Table.Td>{(e.environments ?? []).join(', ') || '–'}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}
