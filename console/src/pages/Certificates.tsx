import { useState } from 'react';
import type { Certificate } from '../api/client';
import { useAct, useList } from '../data/query';
import { useMay } from '../data/session';
import { useSearch } from '../routes/router';
import type { Column } from '../ui/DataTable';
import { Choice } from '../ui/filters';
import { Button, Group, Modal, Text, TextInput } from '../ui/kit';
import { ActButton, ActDialog, CommandLine, Empty, Page, State, Time } from '../ui/parts';
import { commandLine, count, flags, visible } from '../ui/words';
import { ListOf } from './ListOf';

type Asked = 'sign' | 'revoke' | 'clean';

const columns = (open: (c: Certificate) => void): Column<Certificate>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(150px, 2fr)',
    cell: (c) => (
      <button type="button" className="as-link" aria-label={`Open ${c.name}`} onClick={() => open(c)}>
        {c.name}
      </button>
    ),
  },
  { key: 'state', title: 'State', width: '115px', cell: (c) => <State of={c.state} /> },
  { key: 'from', title: 'Asked from', width: 'minmax(100px, 1fr)', from: 900, cell: (c) => c.from ?? '–' },
  { key: 'received', title: 'Asked', width: '100px', from: 600, cell: (c) => <Time at={c.received} /> },
  {
    key: 'until',
    title: 'Good until',
    width: '110px',
    from: 600,
    cell: (c) => (c.not_after ? <time dateTime={c.not_after}>{c.not_after.slice(0, 10)}</time> : '–'),
  },
  {
    key: 'print',
    title: 'Fingerprint',
    width: 'minmax(160px, 1fr)',
    from: 1200,
    cell: (c) => (
      <span className="mono" title={c.fingerprint}>
        {c.fingerprint}
      </span>
    ),
  },
];

/** The row that is open. A name may have a certificate and a request: a certificate is known by its serial, too. */
export function opened(rows: Certificate[], name?: string, serial?: string): Certificate | undefined {
  return rows.find((c) => c.name === name && (!serial || c.serial === serial));
}

/** Certificates of nodes, and requests that wait for somebody. */
export function Certificates() {
  const [search, change] = useSearch();
  const list = useList('certificate.list', { state: search.state }, { every: 10_000 });
  const find = search.find ?? '';
  const rows = find ? list.rows.filter((c) => c.name.includes(find)) : list.rows;
  const shown = opened(list.rows, search.name, search.serial);
  const some = Boolean(search.state || find);
  const open = (c: Certificate) => change({ name: c.name, serial: c.serial }, false);
  return (
    <Page title="Certificates" name="Certificates">
      <Group gap="xs" className="filters">
        <Choice
          label="State"
          any="Any state"
          width={150}
          data={['requested', 'signed', 'revoked']}
          value={search.state}
          set={(state) => change({ state })}
        />
        <TextInput
          label="Name"
          data-filter
          placeholder="a part of it"
          value={find}
          onChange={(e) => change({ find: e.currentTarget.value })}
        />
        <Text component="output" size="sm" mt={28}>
          {count(rows.length)} of {count(list.rows.length)}
        </Text>
      </Group>
      <ListOf
        label="Certificates"
        list={list}
        rows={rows}
        columns={columns(open)}
        rowKey={(c) => `${c.name} ${c.state} ${c.serial ?? ''}`}
        onOpen={open}
        empty={
          some ? (
            <Empty title={search.state === 'requested' && !find ? 'No request waits' : 'No certificate is like that'}>
              <Button variant="default" size="xs" onClick={() => change({ state: '', find: '' })}>
                Show all certificates
              </Button>
            </Empty>
          ) : (
            <Empty title="No certificates yet">
              <Text size="sm">This command prints what to run on a machine.</Text>
              <CommandLine line="tutti ca token" />
            </Empty>
          )
        }
      />
      {shown && (
        <One
          key={`${shown.name} ${shown.serial ?? ''}`}
          c={shown}
          close={() => change({ name: '', serial: '' }, false)}
        />
      )}
      <CommandLine line={commandLine('ca', 'list', ...flags({ state: search.state }))} />
    </Page>
  );
}

function One({ c, close }: { c: Certificate; close: () => void }) {
  const may = useMay('certificate:write');
  const [asked, setAsked] = useState<Asked>();
  const after = { onSuccess: close };
  const acts = {
    sign: useAct('certificate.sign', ['certificate.list']),
    revoke: useAct('certificate.revoke', ['certificate.list', 'node.list', 'node.show']),
    clean: useAct('certificate.clean', ['certificate.list', 'node.list', 'node.show']),
  };
  const waits = c.state === 'requested';
  const forms = {
    sign: {
      title: `Sign the request of ${c.name}`,
      word: 'Sign',
      text: 'Whoever sent the request becomes this node. Compare the fingerprint with the one that the machine prints: puppet agent --fingerprint.',
    },
    revoke: {
      title: `Revoke the certificate of ${c.name}`,
      word: 'Revoke',
      text: 'The node is refused from now on, and its connections are closed.',
    },
    clean: {
      title: waits ? `Drop the request of ${c.name}` : `Forget the certificate of ${c.name}`,
      word: waits ? 'Drop' : 'Revoke and forget',
      text: waits
        ? 'The request is dropped; the machine may send another one.'
        : 'It is revoked and forgotten: the name can be asked for again.',
    },
  };
  if (asked) {
    const form = forms[asked];
    const act = acts[asked];
    return (
      <ActDialog
        title={form.title}
        opened
        close={() => setAsked(undefined)}
        act={() => act.mutate({ name: c.name }, after)}
        word={form.word}
        danger={asked !== 'sign'}
        busy={act.isPending}
        error={act.error}
        line={commandLine('ca', asked, c.name)}
      >
        <Text size="sm">{form.text}</Text>
        {asked === 'sign' && <Facts c={c} />}
      </ActDialog>
    );
  }
  return (
    <Modal opened onClose={close} size="lg" title={c.name} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Facts c={c} />
      <Group justify="flex-end" mt="md">
        {waits && (
          <ActButton {...may} onClick={() => setAsked('sign')}>
            Sign…
          </ActButton>
        )}
        {c.state === 'signed' && (
          <ActButton {...may} variant="default" onClick={() => setAsked('revoke')}>
            Revoke…
          </ActButton>
        )}
        <ActButton {...may} variant="default" onClick={() => setAsked('clean')}>
          {waits ? 'Drop…' : 'Forget…'}
        </ActButton>
      </Group>
    </Modal>
  );
}

function Facts({ c }: { c: Certificate }) {
  return (
    <dl className="pairs">
      <dt>State</dt>
      <dd>
        <State of={c.state} />
      </dd>
      <dt>Fingerprint</dt>
      <dd className="mono">{c.fingerprint}</dd>
      {c.from && (
        <>
          <dt>Asked from</dt>
          <dd>
            {c.from} <Time at={c.received} />
          </dd>
        </>
      )}
      <dt>Other names</dt>
      <dd>{(c.alt_names ?? []).join(', ') || 'none'}</dd>
      {c.serial && (
        <>
          <dt>Serial</dt>
          <dd className="mono">{c.serial}</dd>
          <dt>Good</dt>
          <dd>
            {c.not_before?.slice(0, 10)} to {c.not_after?.slice(0, 10)}
          </dd>
        </>
      )}
      {Object.entries(c.extensions ?? {}).map(([key, value]) => (
        <div key={key} style={{ display: 'contents' }}>
          <dt>{visible(key)}</dt>
          <dd>{visible(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
