import type { NodeCounts } from '../api/client';
import { moves, useAfterEvents } from '../data/live';
import { useAsk } from '../data/query';
import { mayDo, useSession } from '../data/session';
import { Link, nodeAddress } from '../routes/router';
import { Group, SimpleGrid, Stack, Table, Text, Title } from '../ui/kit';
import { Bar, Coming, CommandLine, Empty, Failure, Page, State, Time } from '../ui/parts';
import { count, many, runStates, titleOf, visible } from '../ui/words';
import { sourceOf } from './change/source';

/** The fleet in one look: what failed first, what goes on, what waits. */
export function Overview() {
  const { session } = useSession();
  const sees = mayDo(session, 'node:read');
  return (
    <Page title="Overview" name="Overview">
      <div className="page-scroll">
        <Stack gap="md">
          {sees ? (
            <Fleet />
          ) : (
            <Empty title="You may not see nodes">You need a role with node:read. Ask an administrator.</Empty>
          )}
          <SimpleGrid cols={{ base: 1, lg: 2 }}>
            {sees && <FailedNodes />}
            {mayDo(session, 'release:read') && <Changes />}
            {mayDo(session, 'job:read') && <Work />}
          </SimpleGrid>
        </Stack>
      </div>
    </Page>
  );
}

function Fleet() {
  const summary = useAsk('node.summary', {});
  useAfterEvents(moves, () => void summary.refetch());
  const failure = summary.error && <Failure error={summary.error} again={() => void summary.refetch()} />;
  if (!summary.data) return failure ?? <Coming lines={4} />;
  if (summary.data.nodes === 0 && !failure) {
    return (
      <Empty title="No nodes yet">
        <Text size="sm">Make a token; the command prints what to run on a machine, with Puppet or without.</Text>
        <CommandLine line="tutti ca token" />
      </Empty>
    );
  }
  return (
    <>
      {failure}
      <Counts counts={summary.data} />
    </>
  );
}

function Counts({ counts }: { counts: NodeCounts }) {
  const parts = Object.keys(runStates).map((state) => ({
    state,
    n: counts.states[state as keyof NodeCounts['states']] ?? 0,
  }));
  const told = parts.filter((p) => p.n > 0).map((p) => `${count(p.n)} ${runStates[p.state]!.text}`);
  return (
    <section className="card" aria-labelledby="fleet">
      <Group justify="space-between" mb="xs">
        <Title order={2} id="fleet">
          Last runs
        </Title>
        <Link to="/nodes">{many(counts.nodes, 'node')}</Link>
      </Group>
      <Bar parts={parts} label={told.join(', ')} />
      <SimpleGrid cols={{ base: 2, xs: 3, md: 6 }} mt="md" spacing="sm">
        {parts.map((p) => (
          <Link key={p.state} to="/nodes" search={{ state: p.state }} className="plain">
            <div className="number" data-zero={p.n === 0}>
              {count(p.n)}
            </div>
            <State of={p.state} />
          </Link>
        ))}
      </SimpleGrid>
      <Group gap="lg" mt="md">
        <Text size="sm">
          <Link to="/nodes" search={{ connected: 'yes' }}>
            {count(counts.connections.yes)} connected
          </Link>
          ,{' '}
          <Link to="/nodes" search={{ connected: 'no' }}>
            {count(counts.connections.no + counts.connections.never)} not
          </Link>{' '}
          <Text span c="dimmed" size="sm">
            ({count(counts.connections.never)} never were)
          </Text>
        </Text>
        <Text size="sm">
          <Link to="/nodes" search={{ order: 'reported' }}>
            {count(counts.late)} late
          </Link>{' '}
          <Text span c="dimmed" size="sm">
            (no report for an hour)
          </Text>
        </Text>
      </Group>
    </section>
  );
}

function FailedNodes() {
  const failed = useAsk('node.list', { state: 'failed', order: '-reported', limit: 8 });
  useAfterEvents(moves, () => void failed.refetch());
  const nodes = failed.data?.items ?? [];
  return (
    <section className={`card ${nodes.length > 0 ? 'bad-card' : ''}`} aria-labelledby="failed">
      <Group justify="space-between" mb="xs">
        <Title order={2} id="failed">
          Failed
        </Title>
        {failed.data?.next && (
          <Link to="/nodes" search={{ state: 'failed' }}>
            all
          </Link>
        )}
      </Group>
      {failed.error && <Failure error={failed.error} />}
      {failed.isPending && <Coming lines={3} />}
      {failed.data && nodes.length === 0 && <Text size="sm">No node’s last run failed.</Text>}
      <Table verticalSpacing={5} horizontalSpacing={0} layout="fixed">
        <Table.Tbody>
          {nodes.map((n) => (
            <Table.Tr key={n.name}>
              <Table.Td>
                <Link to={nodeAddress(n.name)} label={`Why is ${n.name} red?`}>
                  {n.name}
                </Link>
                <Text size="xs" c="dimmed" lineClamp={2}>
                  {n.compile_error ? `does not compile: ${n.compile_error.message}` : ''}
                </Text>
              </Table.Td>
              <Table.Td w={110} ta="right">
                <Time at={n.report_at} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

/** Releases, what goes on or waits for somebody among them. */
function Changes() {
  const releases = useAsk('release.list', { limit: 6 }, { every: 10_000 });
  const items = releases.data?.items ?? [];
  return (
    <section className="card" aria-labelledby="changes">
      <Group justify="space-between" mb="xs">
        <Title order={2} id="changes">
          Newest releases
        </Title>
        {items.length > 0 && <Link to="/releases">all</Link>}
      </Group>
      {releases.error && <Failure error={releases.error} />}
      {releases.isPending && <Coming lines={3} />}
      {releases.data && items.length === 0 && (
        <Stack gap={6}>
          <Text size="sm">Nothing was released yet. A preview says what a change would do, and is then released.</Text>
          <Link to="/previews">Previews</Link>
        </Stack>
      )}
      <Table verticalSpacing={5} horizontalSpacing={0} layout="fixed">
        <Table.Tbody>
          {items.map((r) => (
            <Table.Tr key={r.id}>
              <Table.Td>
                <Link to={`/releases/${r.id}`}>
                  {r.id} {visible(r.description || sourceOf(r))}
                </Link>
                <Text size="xs" c="dimmed">
                  {many(r.nodes, 'node')}, wave {r.wave} of {(r.waves ?? []).length}, {r.author},{' '}
                  <Time at={r.created_at} />
                </Text>
              </Table.Td>
              <Table.Td w={160} ta="right">
                <State of={r.state} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}

function Work() {
  const jobs = useAsk('job.list', { limit: 8 }, { every: 10_000 });
  const items = jobs.data?.items ?? [];
  return (
    <section className="card" aria-labelledby="work">
      <Group justify="space-between" mb="xs">
        <Title order={2} id="work">
          Newest jobs
        </Title>
        {items.length > 0 && <Link to="/jobs">all</Link>}
      </Group>
      {jobs.error && <Failure error={jobs.error} />}
      {jobs.isPending && <Coming lines={3} />}
      {jobs.data && items.length === 0 && (
        <Stack gap={6}>
          <Text size="sm">Nothing was ordered yet. Choose nodes in the list and run Puppet on them.</Text>
          <Link to="/nodes">Nodes</Link>
        </Stack>
      )}
      <Table verticalSpacing={5} horizontalSpacing={0} layout="fixed">
        <Table.Tbody>
          {items.map((j) => (
            <Table.Tr key={j.id}>
              <Table.Td>
                <Link to={`/jobs/${j.id}`}>
                  {j.id} {titleOf(j)}
                </Link>
                <Text size="xs" c="dimmed">
                  {many(j.nodes, 'node')}, {j.actor}, <Time at={j.created_at} />
                </Text>
              </Table.Td>
              <Table.Td w={110} ta="right">
                <State of={j.state} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </section>
  );
}
