package compile_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// surveyed is nodes of which each has another reason to be compiled, or none.
var surveyed = []fleet.Certname{"answer", "fact", "file", "none", "same", "stopped", "too", "volatile"}

// surveyWorld has compiled all nodes but one, and changed what they read since.
func surveyWorld(t *testing.T) *reuseWorld {
	t.Helper()
	w := newReuseWorld(t)
	stop := w.start(t.Context())
	w.compiler.Play(func(ctx context.Context, o compile.Order) (compile.Outcome, error) {
		reads := compile.Reads{Values: []string{"/facts/os"}, Sources: compile.Sources{Files: []string{"modules/a/" + string(o.Node) + ".pp", "site.pp"}}}
		if o.Node == "volatile" {
			reads.Volatile = []string{"it reads the time"}
		}
		out, err := reading(reads)(ctx, o)
		if o.Node == "answer" {
			out.Asked = []compile.Question{{Kind: compile.AskedQuery, Text: "nodes {}", Rows: 1, Answer: "another"}}
		}
		return out, err
	})
	for _, node := range surveyed {
		if ask := w.ask(node, string(node)); node != "none" {
			ask.Version = version1
			if _, err := w.service.Catalog(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
		}
	}
	stop()
	w.diff.changes.Files = map[string]bool{"modules/a/file.pp": true}
	w.facts.Set("fact", `{"os":"redhat"}`)
	w.facts.Set("same", `{"os":"debian","up":1}`)
	if err := w.queue.Reusables.StopReuse(t.Context(), compile.ReuseStop{Node: "stopped", Environment: production, Version: version1}); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * w.ttl)
	return w
}

func TestASurveySaysWhatJudgeSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := surveyWorld(t)
		for version, stand := range map[fleet.Digest][]fleet.Certname{
			version1:   {"file", "same", "too"},
			versionTwo: {"same", "too"},
		} {
			verdicts, err := w.reuser.Survey(w.queue.Wants, production, version).Judge(t.Context(), surveyed)
			if err != nil {
				t.Fatal(err)
			}
			for i, node := range surveyed {
				one, _ := w.reuser.Judge(t.Context(), compile.Wish{Node: node, Environment: production, Version: version, Staged: true})
				got := verdicts[i]
				if got.Holds != slices.Contains(stand, node) || got.Holds != one.Holds ||
					one.Holds && (got.From.ID != one.From.ID || got.From.Catalog != one.From.Catalog) {
					t.Errorf("%s of version %s: %+v, judged alone %+v", node, version.Short(), got, one)
				}
			}
		}
	})
}

func TestTouchedNodesAreThoseWhoseFilesDiffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := surveyWorld(t)
		touched, others, err := w.reuser.Survey(w.queue.Wants, production, versionTwo).Touched(t.Context(), surveyed)
		if err != nil || !slices.Equal(touched, []fleet.Certname{"file", "none", "stopped", "volatile"}) ||
			!slices.Equal(others, []fleet.Certname{"answer", "fact", "same", "too"}) {
			t.Errorf("touched %v, others %v, %v", touched, others, err)
		}
	})
}

func TestASurveyFailsWithItsStore(t *testing.T) {
	t.Parallel()
	q := compiletest.NewQueue()
	q.Fail(context.DeadlineExceeded)
	survey := compile.NewReuser(compile.ReuserParts{Store: q.Reusables}).Survey(q.Wants, production, version1)
	if _, err := survey.Judge(t.Context(), surveyed); err == nil {
		t.Error("nobody is told that nothing could be read")
	}
}

func TestReadersSayWhichChangedFilesTheyRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := surveyWorld(t)
		w.diff.changes.Files["modules/a/too.pp"], w.diff.changes.Files["modules/a/nobody.pp"] = true, true
		survey := w.reuser.Survey(w.queue.Wants, production, versionTwo)
		readers, err := survey.Readers(t.Context(), surveyed, false)
		var names []fleet.Certname
		got := map[fleet.Certname][]string{}
		for _, r := range readers {
			if names = append(names, r.Node); r.Read != nil {
				got[r.Node] = r.Read.Files
			}
		}
		touched, _, _ := w.reuser.Survey(w.queue.Wants, production, versionTwo).Touched(t.Context(), surveyed)
		if err != nil || !slices.Equal(names, touched) {
			t.Errorf("readers %v, touched %v, %v", names, touched, err)
		}
		want := map[fleet.Certname][]string{"file": {"modules/a/file.pp"}, "too": {"modules/a/too.pp"}, "stopped": nil, "volatile": nil}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("read (-want +got):\n%s", diff)
		}
		all, err := survey.Readers(t.Context(), surveyed, true)
		if err != nil || len(all) != len(surveyed) || all[0].Read == nil || all[0].Read != all[len(all)-1].Read {
			t.Errorf("all: %+v, %v", all, err)
		}
		w.diff.changes.All = true
		if readers, err = w.reuser.Survey(w.queue.Wants, production, versionTwo).Readers(t.Context(), surveyed[:1], false); err != nil || len(readers) != 1 ||
			readers[0].Read != nil {
			t.Errorf("versions that cannot be compared: %+v, %v", readers, err)
		}
	})
}

// Which has what Touch finds, file by file.
func TestWhichFilesWereRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "a/b", "a/b/c", "a/bb", "d"}
		some := func(label string) []string {
			list := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID[string]).Draw(t, label)
			slices.Sort(list)
			return list
		}
		read := compile.Sources{Files: some("files"), Trees: some("trees")}
		changes := compile.Changes{Files: map[string]bool{}, Trees: map[string]bool{}}
		for _, file := range some("changed") {
			changes.Files[file] = true
			for dir := file; dir != "."; dir = path.Dir(dir) {
				changes.Trees[dir] = true
			}
		}
		var want []string
		for _, file := range names {
			below := slices.ContainsFunc(read.Trees, func(tree string) bool { return file == tree || strings.HasPrefix(file, tree+"/") })
			if changes.Files[file] && (below || slices.Contains(read.Files, file)) {
				want = append(want, file)
			}
		}
		got := changes.Which(&read)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if _, untouched := changes.Touch(&read); untouched != (len(got) == 0) {
			t.Fatalf("Touch says %v of %v", untouched, got)
		}
	})
}
