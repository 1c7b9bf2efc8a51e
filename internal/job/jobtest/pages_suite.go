package jobtest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
)

func lookFor(t *testing.T, s job.Store) {
	a, runs := create(t, s, 5)
	b, _ := create(t, s, 1)
	apply(t, s, sent(runs[1], 1), sent(runs[3], 0), accepted(runs[3], 30), ended(runs[4], 2, 0, ""))
	unended, err := s.Unended(t.Context())
	same(t, "unended", []int64{a.ID, b.ID}, ids(unended))
	if err != nil {
		t.Error(err)
	}
	waiting := func(after, n int) []int {
		got, err := s.WaitingRuns(t.Context(), a.ID, after, n)
		if err != nil {
			t.Error(err)
		}
		return numbers(got)
	}
	same(t, "waiting", []int{1, 3}, waiting(0, 10))
	same(t, "one of them", []int{1}, waiting(0, 1))
	same(t, "behind the first", []int{3}, waiting(1, 10))
	due := func(second, n int) []int {
		got, err := s.Due(t.Context(), when(second), n)
		if err != nil {
			t.Error(err)
		}
		return numbers(got)
	}
	same(t, "due too early", []int(nil), due(10, 10))
	same(t, "due when it is", []int{2}, due(11, 10))
	same(t, "due later", []int{2, 4}, due(90, 10))
	same(t, "the longest due", []int{2}, due(90, 1))
	of, err := s.UnfinishedOf(t.Context(), []fleet.Certname{"n001.example", "n005.example", "n002.example"})
	same(t, "unfinished", []int{1, 2, 1}, numbers(of))
	if err != nil {
		t.Error(err)
	}
	if none, err := s.UnfinishedOf(t.Context(), nil); err != nil || len(none) > 0 {
		t.Errorf("of nobody: %v, %v", none, err)
	}
	for _, r := range readRuns(t, s, a.ID) {
		apply(t, s, ended(r, 50, 0, ""))
	}
	unended, err = s.Unended(t.Context())
	same(t, "unended after the end", []int64{b.ID}, ids(unended))
	if err != nil {
		t.Error(err)
	}
}

func pagesOfJobs(t *testing.T, s job.Store) {
	var all []job.Job
	for i := range 6 {
		j, runs := create(t, s, i+1, func(j *job.Job) {
			if i%2 == 1 {
				asTask(fmt.Sprintf("m::t%d", i), "")(j)
				j.Actor = "bob"
			}
		})
		if i == 0 {
			j = apply(t, s, ended(runs[0], 1, 0, ""))[0].Job
		}
		all = append(all, j)
	}
	for what, c := range map[string]struct {
		page job.Page
		want []int // places in all
	}{
		"all":             {job.Page{}, []int{5, 4, 3, 2, 1, 0}},
		"before":          {job.Page{Before: all[2].ID}, []int{1, 0}},
		"the newest":      {job.Page{Limit: 2}, []int{5, 4}},
		"ended":           {job.Page{Statuses: []job.Status{job.Finished, job.Failed}}, []int{0}},
		"of a kind":       {job.Page{Kinds: []job.Kind{job.Task}}, []int{5, 3, 1}},
		"of somebody":     {job.Page{Actor: "bob"}, []int{5, 3, 1}},
		"of a task":       {job.Page{Task: "m::t3"}, []int{3}},
		"on a node":       {job.Page{Node: "n005.example"}, []int{5, 4}},
		"all of it":       {job.Page{Node: "n005.example", Actor: "bob", Kinds: []job.Kind{job.Task}, Statuses: []job.Status{job.Queued}, Task: "m::t5"}, []int{5}},
		"nothing of that": {job.Page{Actor: "eve"}, nil},
	} {
		if c.page.Limit == 0 {
			c.page.Limit = 10
		}
		got, err := s.Jobs(t.Context(), c.page)
		if err != nil {
			t.Fatal(err)
		}
		want, have := []int64{}, []int64{}
		for _, place := range c.want {
			want = append(want, all[place].ID)
		}
		for _, j := range got {
			have = append(have, j.ID)
		}
		same(t, what, want, have)
	}
}

// Clients of the orchestrator page by numbers of jobs, and order them.
func numberedPagesOfJobs(t *testing.T, s job.Store) {
	var all []job.Job
	for i, actor := range []string{"cy", "ann", "bob", "ann"} {
		j, runs := create(t, s, 1, func(j *job.Job) {
			if i > 0 {
				asTask(fmt.Sprintf("m_%d::t%%", i), "")(j)
			}
			j.Actor, j.Spec.Environment, j.CreatedAt = actor, fleet.Environment([]string{"", "b", "a", "b"}[i]), when(i)
			j.Spec.Plan = int64(i / 2)
		})
		if i == 1 {
			apply(t, s, ended(runs[0], 40, 0, ""))
		}
		if i == 2 {
			apply(t, s, ended(runs[0], 50, 1, ""))
		}
		all = append(all, j)
	}
	yes, no := true, false
	for what, c := range map[string]struct {
		page  job.Page
		want  []int // places in all
		total int
	}{
		"behind the first two": {job.Page{Offset: 2}, []int{1, 0}, 4},
		"one of them":          {job.Page{Offset: 2, Limit: 1}, []int{1}, 4},
		"behind the end":       {job.Page{Offset: 9}, nil, 4},
		"the oldest first":     {job.Page{Ascending: true}, []int{0, 1, 2, 3}, 4},
		"by who ordered":       {job.Page{By: job.ByActor, Ascending: true}, []int{1, 3, 2, 0}, 4},
		"and back":             {job.Page{By: job.ByActor}, []int{0, 2, 3, 1}, 4},
		"by environment":       {job.Page{By: job.ByEnvironment, Ascending: true}, []int{0, 2, 1, 3}, 4},
		"by status":            {job.Page{By: job.ByStatus, Ascending: true}, []int{2, 1, 0, 3}, 4},
		"by time":              {job.Page{By: job.ByTime}, []int{2, 1, 3, 0}, 4},
		"part of a task":       {job.Page{TaskPart: "_2:"}, []int{2}, 1},
		"no pattern":           {job.Page{TaskPart: "%"}, []int{3, 2, 1}, 3},
		"of plans":             {job.Page{Plans: &yes}, []int{3, 2}, 2},
		"of a plan":            {job.Page{Plan: 1}, []int{3, 2}, 2},
		"of no plan there is":  {job.Page{Plan: 2}, nil, 0},
		"of none":              {job.Page{Plans: &no}, []int{1, 0}, 2},
		"that ended":           {job.Page{FinishedFrom: when(1)}, []int{2, 1}, 2},
		"that ended late":      {job.Page{FinishedFrom: when(45)}, []int{2}, 1},
		"that ended early":     {job.Page{FinishedUntil: when(45)}, []int{1}, 1},
	} {
		if c.page.Limit == 0 {
			c.page.Limit = 10
		}
		got, err := s.Jobs(t.Context(), c.page)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for _, place := range c.want {
			want = append(want, all[place].ID)
		}
		var have []int64
		for _, j := range got {
			have = append(have, j.ID)
		}
		same(t, what, want, have)
		if total, err := s.CountJobs(t.Context(), c.page); err != nil || total != c.total {
			t.Errorf("%s: %d in all, %v; want %d", what, total, err, c.total)
		}
	}
}

// beginnings keeps, behind later changes, with which change a run began and a job began to stop.
func beginnings(t *testing.T, s job.Store) {
	j, runs := create(t, s, 2)
	apply(t, s, sent(runs[0], 1), sent(runs[1], 1))
	began := apply(t, s, accepted(runs[0], 2))[0].Run
	if began.Began == 0 || began.Began != began.Change {
		t.Fatalf("began with %d, at %d", began.Began, began.Change)
	}
	stopping, err := s.Direct(t.Context(), j.ID, job.Direction{Reason: "stopped", At: when(3)})
	if err != nil || stopping.StopChange != stopping.OwnChange || !stopping.StoppingAt.Equal(when(3)) {
		t.Fatalf("stops with %d at %s, %v", stopping.StopChange, stopping.StoppingAt, err)
	}
	if _, err := s.Direct(t.Context(), j.ID, job.Direction{Kill: true, Reason: "killed", At: when(4)}); err != nil {
		t.Fatal(err)
	}
	apply(t, s, ended(runs[0], 5, 0, ""), ended(runs[1], 6, 0, ""))
	over := readJob(t, s, j.ID)
	if over.StopChange != stopping.StopChange || !over.StoppingAt.Equal(when(3)) || over.OwnChange <= over.StopChange {
		t.Errorf("after the end: stopped with %d at %s, ended with %d", over.StopChange, over.StoppingAt, over.OwnChange)
	}
	rows := readRuns(t, s, j.ID)
	if rows[0].Began != began.Began || rows[0].Change <= began.Began || rows[1].Began != 0 {
		t.Errorf("the rows began with %d and %d", rows[0].Began, rows[1].Began)
	}
}

func pagesOfRuns(t *testing.T, s job.Store) {
	j, runs := create(t, s, 6)
	apply(t, s, ended(runs[1], 1, 0, "same"), ended(runs[2], 1, 0, "other"), ended(runs[4], 1, 2, "same"))
	out, _ := job.EncodeLines("same", "", when(9))
	for what, c := range map[string]struct {
		page job.RunPage
		want []int
	}{
		"all":         {job.RunPage{}, []int{1, 2, 3, 4, 5, 6}},
		"a page":      {job.RunPage{After: 2, Limit: 2}, []int{3, 4}},
		"in states":   {job.RunPage{States: []job.State{job.Succeeded, job.RunFailed}}, []int{2, 3, 5}},
		"of a node":   {job.RunPage{Node: "n004.example"}, []int{4}},
		"alike":       {job.RunPage{Digest: out.Digest}, []int{2, 5}},
		"all of that": {job.RunPage{Digest: out.Digest, States: []job.State{job.RunFailed}, After: 1, Node: "n005.example"}, []int{5}},
	} {
		if c.page.Limit == 0 {
			c.page.Limit = 10
		}
		got, err := s.Runs(t.Context(), j.ID, c.page)
		if err != nil {
			t.Fatal(err)
		}
		same(t, what, c.want, numbers(got))
	}
}

func output(t *testing.T, s job.Store) {
	_, runs := create(t, s, 2)
	text := strings.Repeat("a line of output that is not very short\n", 5000)
	end := ended(runs[0], 1, 0, text)
	if len(end.Outcome.Chunks) < 3 {
		t.Fatalf("only %d chunks", len(end.Outcome.Chunks))
	}
	apply(t, s, end, ended(runs[1], 1, 0, ""))
	apply(t, s, ended(runs[0], 2, 0, "again"))
	read := func(run string, after, n int) []job.Chunk {
		chunks, err := s.Chunks(t.Context(), run, after, n)
		if err != nil {
			t.Fatal(err)
		}
		return chunks
	}
	want := end.Outcome.Chunks
	same(t, "all chunks", want, read(runs[0].ID, 0, 100))
	same(t, "the first", want[:1], read(runs[0].ID, 0, 1))
	same(t, "behind the first line", want, read(runs[0].ID, 1, 100))
	same(t, "behind the first chunk", want[1:], read(runs[0].ID, want[0].Count, 100))
	same(t, "behind the end", []job.Chunk(nil), read(runs[0].ID, 5000, 100))
	same(t, "none", []job.Chunk(nil), read(runs[1].ID, 0, 100))
}

func changes(t *testing.T, s job.Store) {
	j, runs := create(t, s, 4)
	apply(t, s, sent(runs[0], 1), sent(runs[1], 1), sent(runs[2], 1), accepted(runs[0], 2))
	read := func(after int64, n int) (job.Job, []int) {
		got, rows, err := s.Changes(t.Context(), j.ID, after, n)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(rows); i++ {
			if rows[i].Change <= rows[i-1].Change {
				t.Errorf("changes are out of order: %d, %d", rows[i-1].Change, rows[i].Change)
			}
		}
		return got, numbers(rows)
	}
	now, list := read(0, 10)
	same(t, "all", []int{2, 3, 1}, list)
	if now.Status != job.Working || now.Change == 0 {
		t.Errorf("job is %s at %d", now.Status, now.Change)
	}
	_, list = read(0, 2)
	same(t, "the first two", []int{2, 3}, list)
	_, list = read(now.Change, 10)
	same(t, "none", []int(nil), list)
	looked := job.Event{Run: runs[1].ID, What: job.WasLeft, At: when(3), Due: when(90)}
	apply(t, s, looked)
	after, list := read(now.Change, 10)
	same(t, "what nobody can see takes no number", []int(nil), list)
	same(t, "neither does the job", now.Change, after.Change)
	apply(t, s, ended(runs[2], 4, 0, ""))
	_, list = read(now.Change, 10)
	same(t, "the next", []int{3}, list)
}

func prune(t *testing.T, s job.Store) {
	old, first := create(t, s, 2, asTask("m::old", ""))
	recent, second := create(t, s, 1, asTask("m::recent", ""))
	open, _ := create(t, s, 1)
	apply(t, s, ended(first[0], 1, 0, "x"), ended(first[1], 2, 0, "y"), ended(second[0], 9, 0, "z"))
	if n, err := s.PruneJobs(t.Context(), when(2)); err != nil || n != 0 {
		t.Errorf("too early: %d, %v", n, err)
	}
	if n, err := s.PruneJobs(t.Context(), when(5)); err != nil || n != 1 {
		t.Errorf("got %d, %v", n, err)
	}
	list, err := s.Jobs(t.Context(), job.Page{Limit: 10})
	same(t, "what is left", []int64{recent.ID, open.ID}, ids(list))
	if err != nil {
		t.Error(err)
	}
	if rows := readRuns(t, s, old.ID); len(rows) > 0 {
		t.Errorf("runs are left: %v", rows)
	}
	if chunks, err := s.Chunks(t.Context(), first[0].ID, 0, 9); err != nil || len(chunks) > 0 {
		t.Errorf("output is left: %v, %v", chunks, err)
	}
	named, err := s.JobFiles(t.Context())
	same(t, "files", []fleet.Digest{fleet.DigestOf([]byte("m::recent"))}, named)
	if err != nil {
		t.Error(err)
	}
}
