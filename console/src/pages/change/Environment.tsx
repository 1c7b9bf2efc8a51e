import { useAsk } from '../../data/query';
import { Choice } from '../../ui/filters';

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
