import { useState } from 'react';
import type { CodeBranch, CodeSource } from '../../api/client';
import { useAct, useAsk } from '../../data/query';
import { useMay } from '../../data/session';
import { Checkbox, Group, Stack, Table, Text, Title } from '../../ui/kit';
import { ActButton, ActDialog, Coming, CommandLine, Empty, Failure, State, Time } from '../../ui/parts';
import { commandLine, short, visible } from '../../ui/words';

/** The git repositories that the server follows, and how the deploy of each branch stands. */
export default function Sources() {
  const list = useAsk('source.list', {}, { every: 10_000 });
  const [asked, setAsked] = useState<CodeSource>();
  if (list.error) return <Failure error={list.error} again={() => void list.refetch()} />;
  if (!list.data) return <Coming />;
  const sources = list.data.items ?? [];
  if (sources.length === 0) {
    return (
      <div className="page-scroll">
        <Empty title="The server follows no repository">
          <Text size="sm">Each branch of a source is an environment, deployed when it changes.</Text>
          <CommandLine line="tutti code source add control https://git.example.test/control.git" />
        </Empty>
      </div>
    );
  }
  return (
    // What scrolls must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <section className="page-scroll" aria-label="Sources" tabIndex={0}>
      <Stack gap="md">
        {sources.map((s) => (
          <Source key={s.name} s={s} sync={() => setAsked(s)} />
        ))}
      </Stack>
      {asked && <Sync source={asked.name} close={() => setAsked(undefined)} />}
    </section>
  );
}

function Source({ s, sync }: { s: CodeSource; sync: () => void }) {
  const may = useMay('code:deploy');
  const show = useAsk('source.show', { name: s.name }, { every: 10_000 });
  const branches: CodeBranch[] = show.data?.known ?? [];
  return (
    <section className={`card ${s.trouble ? 'bad-card' : ''}`} aria-label={`Source ${s.name}`}>
      <Group justify="space-between" gap="xs">
        <Title order={2}>{s.name}</Title>
        <ActButton {...may} variant="default" onClick={sync}>
          Look now…
        </ActButton>
      </Group>
      <Text size="sm" className="mono">
        {visible(s.url)}
      </Text>
      <Text size="sm" c="dimmed">
        looked at <Time at={s.looked_at} />
        {s.trouble && (
          <>
            {' '}
            <State of="failed">{visible(s.trouble)}</State>
          </>
        )}
      </Text>
      {show.error && <Failure error={show.error} />}
      {branches.length > 0 && (
        <Table aria-label={`Branches of ${s.name}`} mt="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Branch</Table.Th>
              <Table.Th>Deploy</Table.Th>
              <Table.Th>Commit</Table.Th>
              <Table.Th>When</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {branches.map((b) => (
              <Table.Tr key={b.branch}>
                <Table.Td>
                  {visible(b.branch)}
                  {b.environment !== b.branch && ` → ${b.environment}`}
                </Table.Td>
                <Table.Td>
                  <State of={b.gone_at ? 'missing' : b.state} />
                  {b.error && <pre className="output">{visible(b.error)}</pre>}
                </Table.Td>
                <Table.Td className="mono">{short(b.commit)}</Table.Td>
                <Table.Td>
                  <Time at={b.deployed_at ?? b.queued_at} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
    </section>
  );
}

function Sync({ source, close }: { source: string; close: () => void }) {
  const [purge, setPurge] = useState(false);
  const sync = useAct('source.sync', ['source.list', 'source.show', 'environment.list', 'version.list']);
  return (
    <ActDialog
      title={`Look at ${source} now`}
      opened
      close={close}
      act={() => sync.mutate({ name: source, purge: purge || undefined }, { onSuccess: close })}
      word="Look"
      busy={sync.isPending}
      error={sync.error}
      line={commandLine('code', 'source', 'sync', source, purge && '--purge')}
    >
      <Text size="sm">Branches that changed are deployed.</Text>
      <Checkbox
        label="Delete the environments of branches that are gone"
        checked={purge}
        onChange={(e) => setPurge(e.currentTarget.checked)}
      />
    </ActDialog>
  );
}
