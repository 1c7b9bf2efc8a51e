import { useState } from 'react';
import { useAct } from '../../data/query';
import { useGo } from '../../routes/router';
import { Text, TextInput } from '../../ui/kit';
import { ActDialog } from '../../ui/parts';
import { commandLine, flags, short } from '../../ui/words';

/** Asks for a preview of a version that is deployed: what it would change on nodes. */
export function PreviewDialog({
  environment,
  version,
  close,
}: {
  environment: string;
  version?: string;
  close: () => void;
}) {
  const go = useGo();
  const [where, setWhere] = useState('');
  const [description, setDescription] = useState('');
  const create = useAct('preview.create', ['preview.list']);
  return (
    <ActDialog
      title={`Preview of ${environment}`}
      opened
      close={close}
      act={() =>
        create.mutate(
          {
            environment,
            version,
            description: description || undefined,
            targets: where ? { query: where } : undefined,
          },
          { onSuccess: (made) => go(`/previews/${made.id}`) },
        )
      }
      word="Preview"
      busy={create.isPending}
      error={create.error}
      line={commandLine('preview', 'create', environment, ...flags({ version, where, description }))}
    >
      <Text size="sm">
        {version ? (
          <>
            Version <span className="mono">{short(version)}</span>
          </>
        ) : (
          'The current version'
        )}{' '}
        is compiled for the nodes and compared with the catalogs that they have. Nothing is deployed or released.
      </Text>
      <TextInput
        label="Which nodes"
        description="A condition of PQL; empty: every node of the environment"
        placeholder={'facts.os.family = "Debian"'}
        value={where}
        onChange={(e) => setWhere(e.currentTarget.value)}
      />
      <TextInput label="What it is about" value={description} onChange={(e) => setDescription(e.currentTarget.value)} />
    </ActDialog>
  );
}
