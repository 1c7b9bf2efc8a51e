package jobtest

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// RunStore runs the conformance suite of job.Store. open returns an empty store that the
// test owns.
func RunStore(t *testing.T, open func(t *testing.T) job.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, job.Store){
		"a job is read as it was made":            readAsMade,
		"a life, step by step":                    life,
		"verdicts":                                verdicts,
		"several events in one transaction":       severalEvents,
		"output comes with the end":               output,
		"an order is kept":                        ordered,
		"secrets go with the end":                 secrets,
		"stopping":                                stopping,
		"what the dispatcher looks for":           lookFor,
		"pages of jobs":                           pagesOfJobs,
		"pages of jobs by their number":           numberedPagesOfJobs,
		"pages of runs":                           pagesOfRuns,
		"changes keep the number of a beginning":  beginnings,
		"changes are the rows by their number":    changes,
		"files of jobs":                           files,
		"old jobs are forgotten":                  prune,
		"many at once":                            manyAtOnce,
		"any events leave what the oracle leaves": sameAsOracle,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// when is a time that every store can keep.
func when(second int) time.Time {
	return time.Date(2026, 11, 21, 22, 0, second, 123456000, time.UTC)
}

// made is an order with n nodes, and its runs.
func made(n int, change ...func(*job.Job)) (job.Job, []job.Run) {
	j := job.Job{
		Spec:  job.Spec{Kind: job.Command, Command: &job.CommandSpec{Command: "uptime"}, Targets: job.Targets{All: true}, Timeout: time.Minute},
		Actor: "ann", ActorKind: fleet.UserActor, Status: job.Queued, CreatedAt: when(0), Counts: job.Counts{job.Waiting: n},
	}
	for _, c := range change {
		c(&j)
	}
	runs := make([]job.Run, n)
	for i := range runs {
		runs[i] = job.Run{ID: uuid.NewString(), Number: i + 1, Node: fleet.Certname(fmt.Sprintf("n%03d.example", i+1)), State: job.Waiting}
	}
	return j, runs
}

// create stores an order and returns its runs as they are in the store.
func create(t *testing.T, s job.Store, n int, change ...func(*job.Job)) (job.Job, []job.Run) {
	t.Helper()
	j, runs := made(n, change...)
	j, err := s.CreateJob(t.Context(), j, runs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range runs {
		runs[i].Job = j.ID
	}
	return j, runs
}

func asTask(name string, parameters string) func(*job.Job) {
	return func(j *job.Job) {
		j.Spec.Kind, j.Spec.Command = job.Task, nil
		j.Spec.Task = &job.TaskSpec{
			Name: name, Files: []job.FileRef{{Name: "m/tasks/t.sh", Digest: fleet.DigestOf([]byte(name)), Bytes: 3}},
			Metadata: &pxp.TaskMetadata{InputMethod: "stdin"}, Hidden: []string{"password"},
		}
		if parameters != "" {
			j.Spec.Task.Parameters = []byte(parameters)
		}
	}
}

func apply(t *testing.T, s job.Store, events ...job.Event) []job.Applied {
	t.Helper()
	applied, err := s.Apply(t.Context(), events)
	if err != nil {
		t.Fatal(err)
	}
	if len(applied) != len(events) {
		t.Fatalf("%d verdicts for %d events", len(applied), len(events))
	}
	return applied
}

func sent(r job.Run, second int) job.Event {
	return job.Event{Run: r.ID, What: job.WasSent, At: when(second), Due: when(second + 10)}
}

func accepted(r job.Run, second int) job.Event {
	return job.Event{Run: r.ID, Node: r.Node, What: job.Accepted, At: when(second), Due: when(second + 60)}
}

func ended(r job.Run, second, exit int, stdout string) job.Event {
	out, chunks := job.EncodeLines(stdout, "", when(second))
	state := job.Succeeded
	if exit != 0 {
		state = job.RunFailed
	}
	return job.Event{
		Run: r.ID, Node: r.Node, What: job.Ended, At: when(second), State: state, Reason: fmt.Sprintf("exit code %d", exit),
		Outcome: &job.Outcome{ExitCode: exit, Output: out, Chunks: chunks},
	}
}

func dropped(r job.Run, second int, state job.State) job.Event {
	return job.Event{Run: r.ID, What: job.DroppedOut, At: when(second), State: state, Reason: "because"}
}

func readJob(t *testing.T, s job.Store, id int64) job.Job {
	t.Helper()
	j, err := s.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func readRuns(t *testing.T, s job.Store, id int64) []job.Run {
	t.Helper()
	runs, err := s.Runs(t.Context(), id, job.RunPage{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	return runs
}

// same compares times by what they mean and lists by what they hold.
func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(sameChunk)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// sameChunk is quicker than looking at each byte.
func sameChunk(a, b job.Chunk) bool {
	return a.First == b.First && a.Count == b.Count && a.At.Equal(b.At) && bytes.Equal(a.Text, b.Text)
}

func wantMissing(t *testing.T, err error) {
	t.Helper()
	if err == nil || fault.Of(err) != fault.NotFound {
		t.Errorf("error = %v, want not found", err)
	}
}

// agree checks that a job's counts are those of its rows, and its numbers unique.
func agree(t *testing.T, s job.Store, id int64) {
	t.Helper()
	counts, seen := job.Counts{}, map[int64]bool{}
	j := readJob(t, s, id)
	for _, r := range readRuns(t, s, id) {
		counts[r.State]++
		if r.Change > j.Change || r.Change != 0 && seen[r.Change] {
			t.Errorf("run %d has the change %d of %d, or shares it", r.Number, r.Change, j.Change)
		}
		seen[r.Change] = true
	}
	same(t, "counts", counts, j.Counts)
}

func numbers(runs []job.Run) []int {
	var list []int
	for _, r := range runs {
		list = append(list, r.Number)
	}
	return list
}

func ids(jobs []job.Job) []int64 {
	var list []int64
	for _, j := range jobs {
		list = append(list, j.ID)
	}
	slices.Sort(list)
	return list
}
