import { useAsk } from '../../data/query';
import { Choice } from '../../ui/filters';
import { TextInput } from '../../ui/kit';

/** One of the environments, or any. */
export function EnvironmentChoice({ value, set }: { value?: string; set: (environment: string) => void }) {
  const list = useAsk('environment.list', {});
  return (
    <Choice
      label="Environment"
      any="Any environment"
      width={170}
      data={(list.data?.items ?? []).map((v) => v.environment)}
      value={value}
      set={set}
    />
  );
}

/** The environments in which something holds; none: all of them. */
export const everywhere = (environments: string[] | undefined) => (environments ?? []).join(', ') || 'all';

/** The environments in which something is to hold, as a person types them. */
export function EnvironmentNames({ value, set }: { value: string; set: (names: string) => void }) {
  return (
    <TextInput
      label="Environments"
      description="Names with commas between them; empty: all"
      value={value}
      onChange={(e) => set(e.currentTarget.value)}
    />
  );
}
