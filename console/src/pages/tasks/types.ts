// What a form shows for a parameter of a task, by its Puppet data type. What a type means the server decides.

export type Field =
  | { kind: 'choice'; values: string[] }
  | { kind: 'boolean' }
  | { kind: 'number'; least?: number; most?: number; whole: boolean }
  | { kind: 'json' }
  | { kind: 'text'; empty: boolean }; // whether an empty text is one of its values

/** The name and the arguments of a type: Enum['a', 'b'] is Enum and two of them. */
export function split(type: string): { name: string; args: string[] } {
  const open = type.indexOf('[');
  if (open < 0 || !type.trimEnd().endsWith(']')) return { name: type.trim(), args: [] };
  const inner = type.trimEnd().slice(open + 1, -1);
  const args: string[] = [];
  let depth = 0;
  let quote = '';
  let begun = 0;
  for (let i = 0; i < inner.length; i++) {
    const c = inner[i]!;
    if (quote) {
      if (c === '\\') i++;
      else if (c === quote) quote = '';
    } else if (c === "'" || c === '"' || c === '/') quote = c;
    else if (c === '[' || c === '{') depth++;
    else if (c === ']' || c === '}') depth--;
    else if (c === ',' && depth === 0) {
      args.push(inner.slice(begun, i).trim());
      begun = i + 1;
    }
  }
  const last = inner.slice(begun).trim();
  return { name: type.slice(0, open).trim(), args: last ? [...args, last] : args };
}

/** A text without its quotes. */
const bare = (text: string) => text.replace(/^(['"])(.*)\1$/s, '$2').replaceAll(/\\(['"\\])/g, '$1');

const bound = (text: string | undefined) => (text === undefined || text === 'default' ? undefined : Number(text));

export function fieldOf(type: string): Field {
  const { name, args } = split(type);
  switch (name) {
    case 'Optional':
    case 'Sensitive':
    case 'NotUndef':
      return args[0] && !/^['"]/.test(args[0]) ? fieldOf(args[0]) : { kind: 'text', empty: true };
    case 'Enum': {
      const values = args.filter((a) => !/^(true|false)$/.test(a)).map(bare); // the last may say that case does not matter
      return values.length > 0 ? { kind: 'choice', values } : { kind: 'text', empty: true };
    }
    case 'Boolean':
      return { kind: 'boolean' };
    case 'Integer':
    case 'Float':
    case 'Numeric':
      return { kind: 'number', least: bound(args[0]), most: bound(args[1]), whole: name === 'Integer' };
    case 'Array':
    case 'Hash':
    case 'Struct':
    case 'Tuple':
    case 'Collection':
      return { kind: 'json' };
    case 'Variant':
      return variant(args.map(fieldOf));
    case 'String':
      return { kind: 'text', empty: !(Number(args[0]) > 0) };
  }
  return { kind: 'text', empty: name !== 'Pattern' };
}

/** One of several types: a choice if each is one, JSON if no text is among them. */
function variant(fields: Field[]): Field {
  if (fields.length > 0 && fields.every((f) => f.kind === 'choice')) {
    return { kind: 'choice', values: fields.flatMap((f) => f.values) };
  }
  if (fields.length > 0 && fields.every((f) => f.kind === 'number')) {
    return { kind: 'number', whole: fields.every((f) => f.whole) };
  }
  if (fields.length > 0 && fields.every((f) => f.kind === 'boolean')) return { kind: 'boolean' };
  const texts = fields.some((f) => f.kind === 'text' || f.kind === 'choice');
  return texts ? { kind: 'text', empty: fields.some((f) => f.kind === 'text' && f.empty) } : { kind: 'json' };
}

/** What is wrong with a text, as far as a form knows; the server judges it. */
export function misfit(field: Field, text: string): string {
  if (field.kind === 'number') {
    const n = Number(text);
    if (text.trim() === '' || Number.isNaN(n)) return 'a number is expected';
    if (field.whole && !Number.isInteger(n)) return 'a whole number is expected';
    if (field.least !== undefined && n < field.least) return `${field.least} or more is expected`;
    if (field.most !== undefined && n > field.most) return `at most ${field.most} is expected`;
  }
  if (field.kind === 'json') {
    try {
      JSON.parse(text);
    } catch {
      return 'JSON is expected, such as ["a", "b"] or {"a": 1}';
    }
  }
  return '';
}
