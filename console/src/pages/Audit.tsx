import { useState } from 'react';
import type { AuditEntry } from '../api/client';
import { useList } from '../data/query';
import { useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Checkbox, Group, Modal, TextInput } from '../ui/kit';
import { CommandLine, Empty, Page, State, Time } from '../ui/parts';
import { commandLine, flags, visible } from '../ui/words';
import { ListOf } from './ListOf';

const columns = (open: (e: AuditEntry) => void): Column<AuditEntry>[] => [
  { key: 'at', title: 'When', width: '95px', cell: (e) => <Time at={e.at} /> },
  { key: 'actor', title: 'Who', width: 'minmax(80px, 1fr)', cell: (e) => e.actor || e.kind },
  {
    key: 'operation',
    title: 'What',
    width: 'minmax(120px, 1fr)',
    cell: (e) => (
      <button type="button" className="as-link" onClick={() => open(e)}>
        {e.operation}
      </button>
    ),
  },
  {
    key: 'object',
    title: 'To what',
    width: 'minmax(120px, 2fr)',
    from: 600,
    cell: (e) => <span title={visible(e.object ?? '')}>{visible(e.object ?? '')}</span>,
  },
  { key: 'outcome', title: 'Outcome', width: '110px', from: 600, cell: (e) => <State of={e.outcome} /> },
  {
    key: 'detail',
    title: 'Detail',
    width: 'minmax(120px, 2fr)',
    from: 1200,
    cell: (e) => <span title={visible(e.detail ?? '')}>{visible(e.detail ?? '')}</span>,
  },
  { key: 'remote', title: 'From', width: '140px', from: 1200, cell: (e) => e.remote ?? '–' },
];

const times = [
  { value: '1h', label: 'an hour' },
  { value: '24h', label: 'a day' },
  { value: '168h', label: 'a week' },
  { value: '720h', label: '30 days' },
];

/** When a time span began. It is kept as long as the page shows the span: each question would be another one. */
function useSince(span: string | undefined): string | undefined {
  const of = (hours: string | undefined) => ({
    span: hours,
    at: hours ? new Date(Date.now() - Number.parseInt(hours, 10) * 3_600_000).toISOString() : undefined,
  });
  const [kept, keep] = useState(() => of(span));
  if (kept.span !== span) keep(of(span));
  return kept.at;
}

/** Who did what, newest first. */
export function Audit() {
  const [search, change] = useSearch();
  const failed = search.outcome === 'failing';
  const list = useList('audit.list', {
    actor: search.actor,
    operation: search.operation,
    since: useSince(search.since),
    outcome: failed ? 'failing' : undefined,
  });
  const [shown, setShown] = useState<AuditEntry>();
  return (
    <Page
      title="Audit log"
      name="Audit log"
      actions={
        <Button variant="default" size="xs" onClick={list.again}>
          Ask again
        </Button>
      }
    >
      <Group gap="xs" align="flex-end" className="filters">
        <TextInput
          label="Who"
          data-filter
          w={150}
          value={search.actor ?? ''}
          onChange={(e) => change({ actor: e.currentTarget.value })}
        />
        <TextInput
          label="What"
          placeholder="user.*"
          w={160}
          value={search.operation ?? ''}
          onChange={(e) => change({ operation: e.currentTarget.value })}
        />
        <Choice
          label="Within"
          any="Any time"
          width={130}
          data={times}
          value={search.since}
          set={(since) => change({ since })}
        />
        <Checkbox
          label="Only what failed or was denied"
          pb={8}
          checked={failed}
          onChange={(e) => change({ outcome: e.currentTarget.checked ? 'failing' : '' })}
        />
      </Group>
      <ListOf
        label="Audit log"
        list={list}
        columns={columns(setShown)}
        rowKey={(e) => String(e.id)}
        onOpen={setShown}
        empty={
          <Empty title="Nothing is like that in the log">
            <Button
              variant="default"
              size="xs"
              onClick={() => change({ actor: '', operation: '', since: '', outcome: '' })}
            >
              Show all
            </Button>
          </Empty>
        }
      />
      <Modal
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        size="lg"
        title={shown?.operation ?? ''}
        closeButtonProps={{ 'aria-label': 'Close' }}
      >
        {shown && (
          <dl className="pairs">
            {Object.entries(shown).map(([key, value]) => (
              <div key={key} style={{ display: 'contents' }}>
                <dt>{key.replaceAll('_', ' ')}</dt>
                <dd>{visible(String(value))}</dd>
              </div>
            ))}
          </dl>
        )}
      </Modal>
      <CommandLine
        line={commandLine(
          'audit',
          'list',
          ...flags({ actor: search.actor, operation: search.operation, since: search.since }),
          failed && '--failed',
        )}
      />
    </Page>
  );
}
