// A group as a form has it: lines and texts, which become what the API takes, and the flags of the command line.
import type { Group, GroupSpec } from '../../api/client';

export interface Pair {
  name: string;
  value: string;
}

export interface Draft {
  name: string;
  parent: string;
  description: string;
  environment: string;
  decides: boolean;
  rule: string;
  nodes: string[];
  classes: string[];
  parameters: Pair[];
  variables: Pair[];
  data: Pair[];
}

type Values = Record<string, unknown>;
type OfClasses = Record<string, Values>;

export const blank: Draft = {
  name: '',
  parent: '',
  description: '',
  environment: '',
  decides: false,
  rule: '',
  nodes: [],
  classes: [],
  parameters: [],
  variables: [],
  data: [],
};

/** A value as a person types it: a text stands for itself, unless it could be read as something else. */
export function typed(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value);
  return isJSON(value) ? JSON.stringify(value) : value;
}

/** What was typed: JSON, or else a text. */
export function read(text: string): unknown {
  return isJSON(text) ? (JSON.parse(text) as unknown) : text;
}

function isJSON(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether a value has a number that a browser would write back as another one. */
function bends(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === 'object' && value !== null && Object.values(value).some(bends);
}

/** Why a browser must not write a group back; empty: it may. */
export function heldBack(groups: Pick<GroupSpec, 'name' | 'classes' | 'variables' | 'data'>[]): string {
  const held = groups.find((g) => bends([g.classes, g.variables, g.data]));
  return held ? `${held.name} has a number that a browser cannot hold: use the command line.` : '';
}

/** The groups that a text describes, or why it cannot be read. */
export function groupsIn(text: string): { groups: GroupSpec[]; wrong: string } {
  try {
    const file = JSON.parse(text) as { groups?: unknown };
    if (!Array.isArray(file?.groups))
      return { groups: [], wrong: 'It has no list “groups”: {"groups": [{"name": "Web servers", …}]}.' };
    const groups = file.groups as GroupSpec[];
    return { groups, wrong: heldBack(groups.filter((g) => typeof g === 'object' && g !== null)) };
  } catch (cause) {
    const yaml = /^\s*groups:/.test(text) ? ' YAML is read by the command line: tutti group apply -f FILE.' : '';
    return { groups: [], wrong: `It is no JSON: ${(cause as Error).message}.${yaml}` };
  }
}

const pairs = (values: Values | undefined, prefix = ''): Pair[] =>
  Object.keys(values ?? {})
    .toSorted()
    .map((name) => ({ name: prefix + name, value: typed(values![name]) }));

const ofClasses = (all: OfClasses | undefined): Pair[] =>
  Object.keys(all ?? {})
    .toSorted()
    .flatMap((name) => pairs(all![name], `${name}::`));

export const isRoot = (g: Pick<Group, 'id' | 'parent_id'>) => g.id === g.parent_id;

/** A group as the form begins. */
export function draftOf(g: Group): Draft {
  return {
    name: g.name,
    parent: isRoot(g) ? '' : g.parent,
    description: g.description ?? '',
    environment: g.environment ?? '',
    decides: g.environment_group,
    rule: isRoot(g) ? '' : (g.rule_text ?? ''),
    nodes: g.nodes ?? [],
    classes: Object.keys(g.classes ?? {}).toSorted(),
    parameters: ofClasses(g.classes),
    variables: pairs(g.variables),
    data: ofClasses(g.data),
  };
}

/** Class and name of apache::vhost::port; no class: it is none. */
function parted(path: string): [string, string] {
  const plain = path.replace(/^::/, '');
  const at = plain.lastIndexOf('::');
  return at > 0 ? [plain.slice(0, at), plain.slice(at + 2)] : ['', plain];
}

function nested(rows: Pair[], into: OfClasses): OfClasses {
  for (const { name, value } of rows) {
    if (!name) continue;
    const [of, last] = parted(name);
    (into[of] ??= {})[last] = read(value);
  }
  return into;
}

/** What is wrong with a form, in a sentence; empty: nothing that the form knows of. */
export function amiss(d: Draft): string {
  for (const { name } of [...d.parameters, ...d.data]) {
    const [of, last] = parted(name);
    if (name && (!of || !last)) return `${name} names no class: write CLASS::NAME.`;
  }
  const of = new Set(d.classes);
  const without = d.parameters.find((p) => p.name && !of.has(parted(p.name)[0]));
  if (without)
    return `${without.name} is a parameter of a class that the group does not give: add ${parted(without.name)[0]}.`;
  for (const rows of [d.parameters, d.variables, d.data]) {
    const names = rows.map((r) => r.name).filter(Boolean);
    const twice = names.find((n, i) => names.indexOf(n) !== i);
    if (twice) return `${twice} is given twice.`;
  }
  return '';
}

/** What the API takes. Of a group that is there, a rule that nobody touched goes back as it is stored. */
export function specOf(d: Draft, was?: Group): GroupSpec {
  const before = was && draftOf(was);
  return {
    name: d.name,
    parent: was && d.parent === before?.parent ? was.parent_id : d.parent || undefined,
    description: d.description || undefined,
    environment: d.environment || undefined,
    environment_group: d.decides || undefined,
    rule: before && d.rule === before.rule ? was.rule : d.rule || undefined,
    nodes: d.nodes.length > 0 ? d.nodes : undefined,
    classes: nested(d.parameters, Object.fromEntries(d.classes.map((name) => [name.replace(/^::/, ''), {}]))),
    variables: Object.fromEntries(
      d.variables.filter((v) => v.name).map((v) => [v.name.replace(/^\$/, ''), read(v.value)]),
    ),
    data: nested(d.data, {}),
  };
}

function changed(flag: string, before: Pair[], after: Pair[]): string[] {
  const had = new Map(before.map((p) => [p.name, p.value]));
  const has = new Map(after.filter((p) => p.name).map((p) => [p.name, p.value]));
  return [
    ...[...has]
      .filter(([name, value]) => had.get(name) !== value)
      .flatMap(([name, value]) => [`--${flag}`, `${name}=${value}`]),
    ...[...had.keys()].filter((name) => !has.has(name)).flatMap((name) => [`--no-${flag}`, name]),
  ];
}

function moved(add: string, remove: string, before: string[], after: string[]): string[] {
  return [
    ...after.filter((name) => !before.includes(name)).flatMap((name) => [add, name]),
    ...before.filter((name) => !after.includes(name)).flatMap((name) => [remove, name]),
  ];
}

/** The flags that lead from one form to another: of group create from a blank one, of group edit from the group. */
export function flagsBetween(before: Draft, after: Draft): string[] {
  const text = (flag: string, key: 'name' | 'parent' | 'description' | 'environment' | 'rule') =>
    before[key] === after[key] ? [] : after[key] ? [`--${flag}`, after[key]] : [`--${flag}=`];
  const gone = before.classes.filter((name) => !after.classes.includes(name));
  // A class that goes takes its parameters with it.
  const left = before.parameters.filter((p) => !gone.includes(parted(p.name)[0]));
  return [
    ...(before.name ? text('name', 'name') : []),
    ...text('parent', 'parent'),
    ...text('description', 'description'),
    ...text('environment', 'environment'),
    ...(before.decides === after.decides ? [] : [after.decides ? '--environment-group' : '--environment-group=false']),
    ...text('rule', 'rule'),
    ...moved('--pin', '--unpin', before.nodes, after.nodes),
    ...moved('--class', '--no-class', before.classes, after.classes),
    ...changed('param', left, after.parameters),
    ...changed('variable', before.variables, after.variables),
    ...changed('data-value', before.data, after.data),
  ];
}

/** A group as `tutti group export` writes it. */
export function exported(g: Group): GroupSpec {
  return {
    name: g.name,
    parent: isRoot(g) ? undefined : g.parent,
    description: g.description,
    environment: g.environment,
    environment_group: g.environment_group || undefined,
    rule: isRoot(g) ? undefined : (g.rule_text ?? g.rule),
    nodes: g.nodes,
    classes: g.classes,
    variables: g.variables,
    data: g.data,
  };
}

/** How deep each group is below the root; parents come before children. */
export function depths(groups: Group[]): Map<string, number> {
  const all = new Map<string, number>();
  for (const g of groups) all.set(g.id, isRoot(g) ? 0 : (all.get(g.parent_id) ?? 0) + 1);
  return all;
}

/** The groups below one, at any depth. */
export function below(groups: Group[], id: string): Group[] {
  const of = new Set([id]);
  return groups.filter((g) => !isRoot(g) && of.has(g.parent_id) && of.add(g.id));
}
