import type { Task } from '../api/client';
import { useAsk } from '../data/query';
import { Link, taskAddress, useGo, useSearch } from '../routes/router';
import { DataTable, type Column } from '../ui/DataTable';
import { Find } from '../ui/filters';
import { Checkbox, Group, Text } from '../ui/kit';
import { Coming, CommandLine, Empty, Failure, Page, State } from '../ui/parts';
import { commandLine, count, flags, many, visible } from '../ui/words';
import { EnvironmentChoice } from './change/Environment';
import { targetsOf } from './order/targets';

const columns = (taken: Record<string, string | undefined>): Column<Task>[] => [
  {
    key: 'name',
    title: 'Task',
    width: 'minmax(120px, 1fr)',
    cell: (t) => (
      <Link to={taskAddress(t.name)} search={taken} className="mono">
        {t.name}
      </Link>
    ),
  },
  {
    key: 'description',
    title: 'What it does',
    width: 'minmax(150px, 3fr)',
    cell: (t) =>
      t.problem ? (
        <span title={visible(t.problem)}>
          <State of="failed">cannot be run</State> {visible(t.problem)}
        </span>
      ) : (
        <span title={visible(t.description ?? '')}>{visible(t.description ?? '') || '–'}</span>
      ),
  },
];

/** The environment of an address; the usual one is left out. */
export const elsewhere = (environment: string) => (environment === 'production' ? '' : environment);

/** The tasks of an environment's code. */
export function Tasks() {
  const [search, change] = useSearch();
  const go = useGo();
  const environment = search.environment || 'production';
  const taken = { ...targetsOf(search), environment: elsewhere(environment) };
  const all = search.all === 'yes';
  const asked = useAsk('task.list', { environment });
  const tasks = (asked.data?.items ?? []).filter((t) => all || !t.private);
  const find = (search.find ?? '').toLowerCase();
  const rows = tasks.filter((t) => !find || `${t.name} ${t.description ?? ''}`.toLowerCase().includes(find));
  return (
    <Page title="Tasks" name="Tasks">
      <Group gap="md" align="flex-end" className="filters">
        <EnvironmentChoice
          value={environment}
          set={(name) => change({ environment: elsewhere(name), find: '' }, false)}
        />
        <Checkbox
          label="Private tasks, too"
          pb={8}
          checked={all}
          onChange={(e) => change({ all: e.currentTarget.checked ? 'yes' : '' })}
        />
      </Group>
      {asked.error ? (
        <Failure error={asked.error} again={() => void asked.refetch()} />
      ) : !asked.data ? (
        <Coming />
      ) : (
        <>
          <Find placeholder="package" value={search.find} set={(text) => change({ find: text })}>
            {find ? `${count(rows.length)} of ${many(tasks.length, 'task')}` : many(tasks.length, 'task')}
          </Find>
          <DataTable
            label={`Tasks of ${environment}`}
            columns={columns(taken)}
            rows={rows}
            rowKey={(t) => t.name}
            whole
            onOpen={(t) => go(taskAddress(t.name), taken)}
            empty={
              find ? (
                <Empty title="No task is like that">
                  <button type="button" className="as-link" onClick={() => change({ find: '' })}>
                    Show all tasks
                  </button>
                </Empty>
              ) : (
                <Empty title={`No tasks in ${environment}`}>
                  <Text size="sm">
                    A task is an executable in the directory tasks of a module. Deploy code that has one, and it is
                    here.
                  </Text>
                </Empty>
              )
            }
          />
        </>
      )}
      <CommandLine
        line={commandLine('task', 'list', ...flags({ environment: elsewhere(environment) }), all && '--all')}
      />
    </Page>
  );
}
