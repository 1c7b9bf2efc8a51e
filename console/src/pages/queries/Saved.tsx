import { useState } from 'react';
import type { SavedQuery } from '../../api/client';
import { useAct, useList } from '../../data/query';
import { useSession } from '../../data/session';
import { useSearch } from '../../routes/router';
import type { Column } from '../../ui/DataTable';
import { Text } from '../../ui/kit';
import { ActDialog, Empty, Time } from '../../ui/parts';
import { commandLine, visible } from '../../ui/words';
import { ListOf } from '../ListOf';

const columns = (
  open: (q: SavedQuery) => void,
  remove: (q: SavedQuery) => void,
  me: string | undefined,
): Column<SavedQuery>[] => [
  {
    key: 'name',
    title: 'Query',
    width: 'minmax(110px, 1fr)',
    cell: (q) => (
      <button type="button" className="as-link" aria-label={`Ask ${q.name}`} onClick={() => open(q)}>
        {q.name}
      </button>
    ),
  },
  {
    key: 'text',
    title: 'What it asks',
    width: 'minmax(140px, 3fr)',
    cell: (q) => (
      <span title={visible(`${q.description ?? ''}\n${q.query}`)}>
        {q.description ? visible(q.description) : <span className="mono">{visible(q.query)}</span>}
      </span>
    ),
  },
  { key: 'owner', title: 'Owner', width: '100px', from: 600, cell: (q) => q.owner },
  { key: 'for', title: 'For', width: '90px', from: 1200, cell: (q) => (q.private ? 'its owner' : 'all') },
  { key: 'at', title: 'Saved', width: '100px', from: 1200, cell: (q) => <Time at={q.changed_at} /> },
  {
    key: 'delete',
    title: 'Delete',
    width: '70px',
    from: 600,
    cell: (q) =>
      q.owner === me && (
        <button type="button" className="as-link" aria-label={`Delete… ${q.name}`} onClick={() => remove(q)}>
          Delete…
        </button>
      ),
  },
];

/** The queries that were saved: those that are shared, and one's own. */
export default function Saved() {
  const [, change] = useSearch();
  const { session } = useSession();
  const list = useList('query.list', {});
  const [asked, setAsked] = useState<SavedQuery>();
  const remove = useAct('query.remove', ['query.list']);
  const open = (q: SavedQuery) => change({ q: q.query, saved: q.name, view: '' }, false);
  return (
    <>
      <ListOf
        label="Saved queries"
        list={list}
        columns={columns(open, setAsked, session?.name)}
        rowKey={(q) => q.name}
        onOpen={open}
        empty={
          <Empty title="No query is saved yet">
            <Text size="sm">
              Write one above, such as <code>{'nodes[certname] { latest_report_status = "failed" }'}</code>, and save it
              for yourself or for all.
            </Text>
          </Empty>
        }
      />
      <ActDialog
        title={`Delete ${asked?.name ?? ''}`}
        opened={asked !== undefined}
        close={() => setAsked(undefined)}
        act={() => asked && remove.mutate({ saved: asked.name }, { onSuccess: () => setAsked(undefined) })}
        word="Delete"
        danger
        busy={remove.isPending}
        error={remove.error}
        line={commandLine('query', 'delete', asked?.name)}
      >
        <Text size="sm">
          {asked?.private ? 'Nobody else has used it.' : 'Nobody finds it under this name any more.'} The question was:{' '}
          <code>{visible(asked?.query ?? '')}</code>
        </Text>
      </ActDialog>
    </>
  );
}
