import { useState } from 'react';
import { useAct, useAsk } from '../../data/query';
import { useSearch } from '../../routes/router';
import { Checkbox, Text, TextInput } from '../../ui/kit';
import { ActDialog } from '../../ui/parts';
import { commandLine, visible } from '../../ui/words';

/** Saves a query under a name; one of one's own is replaced. */
export function SaveDialog({ text, name: before, close }: { text: string; name: string; close: () => void }) {
  const [, change] = useSearch();
  const all = useAsk('query.list', {});
  const [name, setName] = useState(before);
  const [description, setDescription] = useState<string>();
  const [hidden, setHidden] = useState<boolean>();
  const save = useAct('query.save', ['query.list', 'query.show']);
  const there = all.data?.items?.find((q) => q.name === name);
  // What is there is kept, unless somebody says otherwise: until it is known nothing is saved, or a private query were everybody's.
  const told = description ?? there?.description ?? '';
  const own = hidden ?? there?.private ?? false;
  return (
    <ActDialog
      title="Save the query"
      opened
      close={close}
      act={() =>
        save.mutate(
          { saved: name, query: text, description: told || undefined, private: own || undefined },
          {
            onSuccess: () => {
              change({ saved: name }, true);
              close();
            },
          },
        )
      }
      word={there ? 'Replace' : 'Save'}
      busy={save.isPending}
      error={save.error ?? all.error}
      blocked={!name || !all.data}
      line={commandLine('query', 'save', name || 'NAME', text, told && '--description', told, own && '--private')}
    >
      <TextInput
        label="Name"
        required
        description="Of a-z, 0-9, dot, dash and underscore"
        value={name}
        onChange={(e) => setName(e.currentTarget.value.trim())}
      />
      {there && (
        <Text size="sm">
          It is there already, of {there.owner}: <span className="mono">{visible(there.query)}</span>
        </Text>
      )}
      <TextInput label="What it is for" value={told} onChange={(e) => setDescription(e.currentTarget.value)} />
      <Checkbox label="Nobody else sees it" checked={own} onChange={(e) => setHidden(e.currentTarget.checked)} />
    </ActDialog>
  );
}
