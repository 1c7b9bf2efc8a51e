import type { Job, JobTargets } from '../../api/client';
import { actionAddress, taskAddress } from '../../routes/router';
import { isQuery } from '../queries/complete';
import type { Form } from './form';

const hidden = '(hidden)';

/** A value as the form of a task or an action has it. */
const typed = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

/** The nodes of an order, as an address names them; undefined: it cannot name these. */
function nodesOf(t: JobTargets): Form | undefined {
  const without = t.exclude ?? [];
  const exclude = without.join(',') || undefined;
  if (t.filter || t.limit || t.app) return undefined;
  const ways = [t.all, t.group, t.query, (t.nodes ?? []).length > 0].filter(Boolean).length;
  if (ways !== 1) return undefined;
  if (t.all) return { by: 'all', exclude };
  if (t.group) return { by: 'group', group: t.group, exclude };
  // A condition and a query are asked for in two places of the form; a query names what it asks for.
  if (t.query) return isQuery(t.query) ? { by: 'query', query: t.query, exclude } : { where: t.query, exclude };
  return { by: 'nodes', nodes: t.nodes!.filter((name) => !without.includes(name)).join(', ') };
}

/** The form that a job of a task or an action came from, filled in; secrets are to be given again. Undefined: it has none. */
export function formOf(job: Job): { to: string; search: Form } | undefined {
  const order = (job.order ?? {}) as Record<string, unknown>;
  const inputs = (order.parameters ?? order.input ?? {}) as Record<string, unknown>;
  const given = Object.entries(inputs).filter(([, value]) => value !== hidden && value !== null);
  const search: Form = {
    ...nodesOf(job.targets),
    ...Object.fromEntries(
      given.filter(([, value]) => value !== '').map(([name, value]) => [`p.${name}`, typed(value)]),
    ),
    empty:
      given
        .filter(([, value]) => value === '')
        .map(([name]) => name)
        .join(',') || undefined,
  };
  if (job.kind === 'task' && typeof order.task === 'string') {
    const environment = job.environment === 'production' ? undefined : job.environment;
    return { to: taskAddress(order.task), search: { ...search, environment, noop: job.noop ? 'yes' : undefined } };
  }
  if (job.kind === 'action' && typeof order.module === 'string' && typeof order.action === 'string') {
    return { to: actionAddress(order.module), search: { ...search, action: order.action } };
  }
  return undefined;
}
