import { useState } from 'react';
import type { User } from '../../api/client';
import { useAct, useAsk, useList } from '../../data/query';
import { mayDo, useMay, useSession } from '../../data/session';
import { useSearch } from '../../routes/router';
import type { Column } from '../../ui/DataTable';
import { Checkbox, Group, PasswordInput, SimpleGrid, Stack, Text, TextInput, useDisclosure } from '../../ui/kit';
import { ActButton, ActDialog, CommandLine, Empty, State, Time } from '../../ui/parts';
import { commandLine } from '../../ui/words';
import { ListOf } from '../ListOf';

const columns = (open: (u: User) => void): Column<User>[] => [
  {
    key: 'name',
    title: 'Name',
    width: 'minmax(90px, 1fr)',
    cell: (u) => (
      <button type="button" className="as-link" aria-label={`Open ${u.name}`} onClick={() => open(u)}>
        {u.name}
      </button>
    ),
  },
  { key: 'state', title: 'State', width: '120px', cell: (u) => <State of={u.state} /> },
  {
    key: 'roles',
    title: 'Roles',
    width: 'minmax(90px, 2fr)',
    cell: (u) => <span title={(u.roles ?? []).join(', ')}>{(u.roles ?? []).join(', ') || 'none'}</span>,
  },
  { key: 'kind', title: 'Kind', width: '90px', from: 600, cell: (u) => u.kind },
  { key: 'login', title: 'Logged in', width: '100px', from: 600, cell: (u) => <Time at={u.login_at} /> },
  { key: 'made', title: 'Made', width: '100px', from: 900, cell: (u) => <Time at={u.created_at} /> },
];

/** Users and their roles. */
export default function Users() {
  const [search, change] = useSearch();
  const list = useList('user.list', {});
  const may = useMay('user:write');
  const [makes, making] = useDisclosure();
  const shown = list.rows.find((u) => u.name === search.name);
  const open = (u: User) => change({ name: u.name }, false);
  return (
    <>
      <Group>
        <ActButton {...may} onClick={making.open}>
          New user…
        </ActButton>
      </Group>
      <ListOf
        label="Users"
        list={list}
        columns={columns(open)}
        rowKey={(u) => u.name}
        onOpen={open}
        empty={<Empty title="There are no users" />}
      />
      {makes && <Create close={making.close} />}
      {shown && <Edit key={shown.name} u={shown} close={() => change({ name: '' }, false)} />}
      <CommandLine line={commandLine('user', 'list')} />
    </>
  );
}

/** The roles that there are, to be chosen; who may not see roles types them. */
function RoleChoice({ chosen, set }: { chosen: string[]; set: (roles: string[]) => void }) {
  const { session } = useSession();
  const sees = mayDo(session, 'role:read');
  const roles = useAsk('role.list', {}, { enabled: sees });
  if (!sees) {
    return (
      <TextInput
        label="Roles"
        description="Names with commas between them"
        value={chosen.join(',')}
        onChange={(e) => set(e.currentTarget.value.split(',').map((r) => r.trim()))}
      />
    );
  }
  return (
    <Checkbox.Group label="Roles" value={chosen} onChange={set}>
      <SimpleGrid cols={{ base: 2, xs: 3 }} spacing="xs" mt={4}>
        {(roles.data?.items ?? []).map((r) => (
          <Checkbox key={r.name} value={r.name} label={r.name} title={r.description} />
        ))}
      </SimpleGrid>
    </Checkbox.Group>
  );
}

function Create({ close }: { close: () => void }) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [roles, setRoles] = useState<string[]>([]);
  const create = useAct('user.create', ['user.list']);
  const given = roles.filter(Boolean);
  return (
    <ActDialog
      title="New user"
      opened
      close={close}
      act={() => create.mutate({ name, password: password || undefined, roles: given }, { onSuccess: close })}
      word="Make"
      busy={create.isPending}
      error={create.error}
      blocked={!name}
      line={commandLine(
        'user',
        'create',
        name || 'NAME',
        ...given.flatMap((r) => ['--role', r]),
        !password && '--no-password',
      )}
    >
      <TextInput
        label="Name"
        required
        autoComplete="off"
        value={name}
        onChange={(e) => setName(e.currentTarget.value.trim())}
      />
      <PasswordInput
        label="Password"
        description="10 bytes or more; empty: nobody can log in until one is set. The command asks for it."
        autoComplete="new-password"
        value={password}
        onChange={(e) => setPassword(e.currentTarget.value)}
      />
      <RoleChoice chosen={roles} set={setRoles} />
    </ActDialog>
  );
}

function Edit({ u, close }: { u: User; close: () => void }) {
  const may = useMay('user:write');
  const { session, again } = useSession();
  const done = () => {
    if (u.name === session?.name) void again(); // other roles are other pages and buttons
    close();
  };
  const [had] = useState(u.roles ?? []); // what was seen when the form was opened: the list is asked anew behind it
  const wasDisabled = u.state === 'disabled';
  const [roles, setRoles] = useState(had);
  const [disabled, setDisabled] = useState(wasDisabled);
  const [unlock, setUnlock] = useState(false);
  const [deletes, deleting] = useDisclosure();
  const edit = useAct('user.edit', ['user.list']);
  const remove = useAct('user.delete', ['user.list']);
  const given = roles.filter((r) => r && !had.includes(r));
  const taken = had.filter((r) => !roles.includes(r));
  const same = given.length + taken.length === 0 && disabled === wasDisabled && !unlock;
  if (deletes) {
    return (
      <ActDialog
        title={`Delete ${u.name}`}
        opened
        close={deleting.close}
        act={() => remove.mutate({ user: u.name }, { onSuccess: done })}
        word="Delete"
        danger
        busy={remove.isPending}
        error={remove.error}
        line={commandLine('user', 'delete', u.name)}
      >
        <Text size="sm">The tokens of {u.name} are revoked, too. The audit log keeps what was done.</Text>
      </ActDialog>
    );
  }
  return (
    <ActDialog
      title={u.name}
      opened
      close={close}
      act={() =>
        edit.mutate(
          {
            user: u.name,
            roles: given.length + taken.length > 0 ? roles.filter(Boolean) : undefined,
            had_roles: given.length + taken.length > 0 ? had : undefined,
            disabled: disabled === wasDisabled ? undefined : disabled,
            unlock: unlock || undefined,
          },
          { onSuccess: done },
        )
      }
      word="Change"
      busy={edit.isPending}
      error={edit.error}
      blocked={same || !may.may}
      line={
        same
          ? commandLine('user', 'show', u.name)
          : commandLine(
              'user',
              'edit',
              u.name,
              ...given.flatMap((r) => ['--add-role', r]),
              ...taken.flatMap((r) => ['--remove-role', r]),
              disabled !== wasDisabled && (disabled ? '--disable' : '--enable'),
              unlock && '--unlock',
            )
      }
    >
      <Text size="sm" c="dimmed" component="div">
        <State of={u.state} /> {u.kind}, made <Time at={u.created_at} />, logged in <Time at={u.login_at} />
        {u.changed_by && `, changed by ${u.changed_by}`}
      </Text>
      {may.why && <Text size="sm">{may.why}</Text>}
      {may.may && (
        <Stack gap="xs">
          <RoleChoice chosen={roles} set={setRoles} />
          <Checkbox
            label="Refuse the user’s logins and tokens"
            checked={disabled}
            onChange={(e) => setDisabled(e.currentTarget.checked)}
          />
          {u.locked_until && (
            <Checkbox
              label="Forget the failed logins that locked it"
              checked={unlock}
              onChange={(e) => setUnlock(e.currentTarget.checked)}
            />
          )}
          <div>
            <button type="button" className="as-link" onClick={deleting.open}>
              Delete the user…
            </button>
          </div>
        </Stack>
      )}
    </ActDialog>
  );
}
