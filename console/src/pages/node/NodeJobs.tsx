import { JobTable } from '../Jobs';

/** The jobs that have a run on the node. */
export default function NodeJobs({ name }: { name: string }) {
  return <JobTable filter={{ node: name }} empty="No job was ordered for this node" />;
}
