import { useState } from 'react';
import { useSearch } from '../../routes/router';
import { listed } from '../../ui/words';
import type { Given, Input } from './Inputs';

export type Form = Record<string, string | undefined>;

/** What is of the page, not of its form. */
const page = new Set(['view', 'action', 'environment', 'find']);

/**
 * What a form holds. It is in the address, too, so that a copied link opens the same form; while somebody types the form counts, as the
 * address comes a moment later.
 */
export function useForm(): [Form, (change: Form) => void] {
  const [search, change] = useSearch();
  const [form, setForm] = useState<Form>(() =>
    Object.fromEntries(Object.entries(search).filter(([key]) => !page.has(key))),
  );
  return [
    form,
    (more) => {
      const next = { ...form, ...more };
      setForm(next);
      change(next);
    },
  ];
}

/** The inputs in a form. A text that is empty, and one that is not given, are two things. */
export function givenIn(form: Form, inputs: Input[]): Given {
  const empty = listed(form.empty ?? '');
  const given: Given = {};
  for (const { name, sensitive } of inputs) {
    const text = form[`p.${name}`];
    if (sensitive) continue; // no address has a secret
    if (text) given[name] = text;
    else if (empty.includes(name)) given[name] = '';
  }
  return given;
}

/** Puts inputs into a form. */
export function withGiven(given: Given, inputs: Input[]): Form {
  const shown = inputs.filter((i) => !i.sensitive);
  return {
    ...Object.fromEntries(shown.map(({ name }) => [`p.${name}`, given[name] || undefined])),
    empty:
      shown
        .filter(({ name }) => given[name] === '')
        .map(({ name }) => name)
        .join(',') || undefined,
  };
}

/** The inputs of a form, and its secrets, which the page alone has. */
export function useGiven(
  form: Form,
  setForm: (change: Form) => void,
  inputs: Input[],
): [Given, (given: Given) => void] {
  const [secrets, setSecrets] = useState<Given>({});
  const given = { ...givenIn(form, inputs), ...secrets };
  return [
    given,
    (next) => {
      const hidden = inputs.filter((i) => i.sensitive && next[i.name] !== undefined);
      setSecrets(Object.fromEntries(hidden.map(({ name }) => [name, next[name]!])));
      setForm(withGiven(next, inputs));
    },
  ];
}
