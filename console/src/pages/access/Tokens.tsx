import { useState } from 'react';
import type { AccessToken } from '../../api/client';
import { useAct, useList } from '../../data/query';
import { useSession } from '../../data/session';
import type { Column } from '../../ui/DataTable';
import { Choice } from '../../ui/filters';
import { Button, Checkbox, Group, Modal, Text, TextInput, useDisclosure } from '../../ui/kit';
import { ActDialog, CommandLine, Empty, State, Time } from '../../ui/parts';
import { commandLine, visible } from '../../ui/words';
import { ListOf } from '../ListOf';

const columns = (mine: string | undefined, revoke: (t: AccessToken) => void): Column<AccessToken>[] => [
  {
    key: 'label',
    title: 'Label',
    width: 'minmax(110px, 2fr)',
    cell: (t) => (t.id === mine ? <State of="current">this login</State> : visible(t.label || t.id)),
  },
  {
    key: 'roles',
    title: 'Narrowed to',
    width: 'minmax(100px, 1fr)',
    from: 600,
    cell: (t) => (t.roles ?? []).join(', ') || 'all that you may',
  },
  { key: 'used', title: 'Used', width: '100px', cell: (t) => <Time at={t.used_at} /> },
  { key: 'made', title: 'Made', width: '100px', from: 900, cell: (t) => <Time at={t.created_at} /> },
  {
    key: 'until',
    title: 'Good until',
    width: '110px',
    from: 600,
    cell: (t) => (t.expires_at ? <time dateTime={t.expires_at}>{t.expires_at.slice(0, 10)}</time> : 'for ever'),
  },
  {
    key: 'revoke',
    title: 'Revoke',
    width: '80px',
    cell: (t) => (
      <button type="button" className="as-link" aria-label={`Revoke… ${t.label || t.id}`} onClick={() => revoke(t)}>
        Revoke…
      </button>
    ),
  },
];

/** The tokens of who is logged in: logins, and those of programs. */
export default function Tokens() {
  const { session } = useSession();
  const list = useList('token.list', { user: '@me' });
  const [asked, setAsked] = useState<AccessToken>();
  const [makes, making] = useDisclosure();
  const revoke = useAct('token.revoke', ['token.list']);
  return (
    <>
      <Group>
        <Button size="xs" onClick={making.open}>
          New token…
        </Button>
      </Group>
      <ListOf
        label="Your tokens"
        list={list}
        columns={columns(session?.token_id, setAsked)}
        rowKey={(t) => t.id}
        empty={
          <Empty title="You have no tokens">
            <Text size="sm">A token lets a program act as you.</Text>
          </Empty>
        }
      />
      {makes && <Create close={making.close} />}
      <ActDialog
        title={`Revoke ${asked?.label || asked?.id || ''}`}
        opened={asked !== undefined}
        close={() => setAsked(undefined)}
        act={() => asked && revoke.mutate({ user: '@me', token: asked.id }, { onSuccess: () => setAsked(undefined) })}
        word="Revoke"
        danger
        busy={revoke.isPending}
        error={revoke.error}
        line={commandLine('token', 'revoke', asked?.id)}
      >
        <Text size="sm">
          {asked?.id === session?.token_id
            ? 'This is the token of this login: the page asks you to log in again.'
            : 'Whoever has the token is refused from now on.'}
        </Text>
      </ActDialog>
      <CommandLine line={commandLine('token', 'list')} />
    </>
  );
}

function Create({ close }: { close: () => void }) {
  const { session } = useSession();
  const [label, setLabel] = useState('');
  const [roles, setRoles] = useState<string[]>([]);
  const [hours, setHours] = useState('');
  const create = useAct('token.create', ['token.list']);
  if (create.data) {
    return (
      <Modal opened onClose={close} title="The new token" closeButtonProps={{ 'aria-label': 'Close' }}>
        <Text size="sm" mb="xs">
          It is shown this once. Keep it where only the program can read it.
        </Text>
        <CommandLine line={create.data.token} />
      </Modal>
    );
  }
  return (
    <ActDialog
      title="New token"
      opened
      close={close}
      act={() =>
        create.mutate({
          label,
          roles: roles.length > 0 ? roles : undefined,
          seconds: hours ? Number(hours) * 3600 : undefined,
        })
      }
      word="Make"
      busy={create.isPending}
      error={create.error}
      blocked={!label}
      line={commandLine(
        'token',
        'create',
        label || 'LABEL',
        ...roles.flatMap((r) => ['--role', r]),
        hours && '--lifetime',
        hours && `${hours}h`,
      )}
    >
      <TextInput
        label="Label"
        description="What it is for"
        required
        value={label}
        onChange={(e) => setLabel(e.currentTarget.value)}
      />
      <Checkbox.Group
        label="Narrowed to"
        description="Give a program only what it needs; none: all that you may"
        value={roles}
        onChange={setRoles}
      >
        <Group gap="xs" mt={4}>
          {(session?.roles ?? []).map((r) => (
            <Checkbox key={r} value={r} label={r} />
          ))}
        </Group>
      </Checkbox.Group>
      <Choice
        label="Good for"
        any="As the server says"
        placeholder="as the server says"
        data={[
          { value: '1', label: 'an hour' },
          { value: '24', label: 'a day' },
          { value: '720', label: '30 days' },
          { value: '2160', label: '90 days' },
        ]}
        value={hours}
        set={setHours}
      />
    </ActDialog>
  );
}
