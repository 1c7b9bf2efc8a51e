import { useState } from 'react';
import { Choice } from '../../ui/filters';
import { Checkbox, PasswordInput, Stack, Textarea, TextInput } from '../../ui/kit';
import { Lines } from '../../ui/parts';
import { visible } from '../../ui/words';
import { misfit, type Field } from '../tasks/types';

/** Something that a task or an action takes. */
export interface Input {
  name: string;
  title?: string;
  about: string; // description, and what else people should know
  field: Field;
  required: boolean;
  sensitive: boolean;
  usual?: unknown; // its default
}

/** What was given: a name that is missing was not given, which is another thing than an empty text. */
export type Given = Record<string, string>;

/** Why something cannot be sent yet; empty: it can. */
export function lacks(inputs: Input[], given: Given): string {
  for (const i of inputs) {
    const text = given[i.name];
    if (text === undefined && i.required) return `${i.title ?? i.name} is missing.`;
    const wrong = text === undefined ? '' : misfit(i.field, text);
    if (wrong) return `${i.title ?? i.name}: ${wrong}.`;
  }
  return '';
}

/** The words of a command line that give the same; secrets are asked for. */
export function inputWords(inputs: Input[], given: Given): string[] {
  const there = inputs.filter((i) => given[i.name] !== undefined);
  return [
    ...there.filter((i) => !i.sensitive).map((i) => `${i.name}=${given[i.name]}`),
    ...there.filter((i) => i.sensitive).flatMap((i) => ['--ask', i.name]),
  ];
}

/** The fields of a form, each as its type asks for it. */
export function InputFields({ inputs, given, set }: { inputs: Input[]; given: Given; set: (given: Given) => void }) {
  const give = (name: string, text: string | undefined) => {
    const next = { ...given };
    if (text === undefined) delete next[name];
    else next[name] = text;
    set(next);
  };
  return (
    <Stack gap="sm">
      {inputs.map((i) => (
        <OneInput key={i.name} input={i} text={given[i.name]} give={(text) => give(i.name, text)} />
      ))}
    </Stack>
  );
}

const placeholderOf = (i: Input) =>
  i.usual === undefined || i.sensitive
    ? undefined
    : visible(typeof i.usual === 'string' ? i.usual : JSON.stringify(i.usual));

function OneInput({ input: i, text, give }: { input: Input; text?: string; give: (text: string | undefined) => void }) {
  const [left, setLeft] = useState(false); // what is half typed is not wrong yet
  const { field } = i;
  const common = {
    label: i.title ?? i.name,
    description: visible(i.about) || undefined,
    required: i.required,
    placeholder: placeholderOf(i),
    error: left && text !== undefined ? misfit(field, text) || undefined : undefined,
    onBlur: () => setLeft(true),
  };
  const typed = (value: string) => give(value === '' ? undefined : value);
  if (i.sensitive) {
    return (
      <PasswordInput {...common} autoComplete="off" value={text ?? ''} onChange={(e) => typed(e.currentTarget.value)} />
    );
  }
  switch (field.kind) {
    case 'choice':
    case 'boolean':
      return (
        <Choice
          label={`${common.label}${i.required ? ' *' : ''}`}
          description={common.description}
          any={`No ${common.label}`}
          placeholder={common.placeholder ?? (i.required ? 'choose' : 'not given')}
          data={field.kind === 'choice' ? field.values : ['true', 'false']}
          value={text}
          set={typed}
        />
      );
    case 'json':
      return (
        <Lines {...common} placeholder={common.placeholder ?? 'JSON'} rows={[1, 12]} value={text ?? ''} set={typed} />
      );
    case 'number':
      return (
        <TextInput
          {...common}
          inputMode="decimal"
          value={text ?? ''}
          onChange={(e) => typed(e.currentTarget.value.trim())}
        />
      );
    case 'text':
  }
  return (
    <div>
      <Textarea
        {...common}
        autosize
        minRows={1}
        maxRows={12}
        value={text ?? ''}
        onChange={(e) => typed(e.currentTarget.value)}
      />
      {field.kind === 'text' && field.empty && (text ?? '') === '' && (
        <Checkbox
          mt={6}
          size="xs"
          label={`Give an empty text as ${common.label}`}
          checked={text === ''}
          onChange={(e) => give(e.currentTarget.checked ? '' : undefined)}
        />
      )}
    </div>
  );
}
