package compile_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

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
				if got.Holds != slices.Contains(stand, node) || got.Holds != one.Holds || one.Holds && (got.From.ID != one.From.ID || got.From.Catalog != one.From.Catalog) {
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
		if err != nil || !slices.Equal(touched, []fleet.Certname{"file", "none", "stopped", "volatile"}) || !slices.Equal(others, []fleet.Certname{"answer", "fact", "same", "too"}) {
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
