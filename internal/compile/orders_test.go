package compile_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// classify is a compile.Classifier.
type classify func(facts json.RawMessage) (compile.Classification, error)

func (f classify) Classify(_ context.Context, _ fleet.Certname, _ fleet.Environment, facts, _ json.RawMessage) (compile.Classification, error) {
	return f(facts)
}

// inline is a compile.Finisher.
type inline func(document []byte) ([]byte, error)

func (f inline) Inline(_ context.Context, _ fleet.Environment, _ fleet.Digest, document []byte) ([]byte, compile.Sources, error) {
	out, err := f(document)
	return out, compile.Sources{}, err
}

func TestOrdersBuild(t *testing.T) {
	t.Parallel()
	facts := &compiletest.Facts{}
	facts.Set("a.example", `{"n":1}`)
	facts.Set("a.example", `{"n":2}`)
	orders := compile.Orders{
		Inputs: facts,
		Classifier: classify(func(facts json.RawMessage) (compile.Classification, error) {
			return compile.Classification{Classes: json.RawMessage(`{"role":{}}`), Parameters: facts, Data: json.RawMessage(`{"role::x":1}`)}, nil
		}),
		ServerFacts: func(_ context.Context, env fleet.Environment, version fleet.Digest) (json.RawMessage, error) {
			return json.RawMessage(`{"environment":"` + string(env) + `","of":"` + version.Short() + `"}`), nil
		},
	}
	got, seq, err := orders.Build(t.Context(), compile.Compilation{
		Node: "a.example", Environment: production, Version: version1, Transaction: "t", Trusted: json.RawMessage(`{"authenticated":"remote"}`), FactsSeq: 1,
	})
	if err != nil || seq != 2 {
		t.Fatalf("facts %d, %v", seq, err)
	}
	want := compile.Order{
		Node: "a.example", Environment: production, Version: version1, Transaction: "t",
		Facts: json.RawMessage(`{"n":2}`), Trusted: json.RawMessage(`{"authenticated":"remote"}`),
		ServerFacts: json.RawMessage(`{"environment":"production","of":"` + version1.Short() + `"}`),
		Classes:     json.RawMessage(`{"role":{}}`), Parameters: json.RawMessage(`{"n":2}`), Data: json.RawMessage(`{"role::x":1}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestOrdersTellWhatCannotBeMended(t *testing.T) {
	t.Parallel()
	facts := &compiletest.Facts{}
	facts.Set("a", `{}`)
	for _, tt := range []struct {
		err  error
		want string // empty: trying again may help
	}{
		{fault.New(fault.Invalid, "group web: the rule compares a list with a number"), "a cannot be classified: group web: the rule compares a list with a number"},
		{fault.New(fault.Unavailable, "the store is busy"), ""},
		{errors.New("boom"), ""},
	} {
		orders := compile.Orders{Inputs: facts, Classifier: classify(func(json.RawMessage) (compile.Classification, error) {
			return compile.Classification{}, tt.err
		})}
		_, _, err := orders.Build(t.Context(), compile.Compilation{Node: "a"})
		failed, _ := errors.AsType[*compile.Error](err)
		switch {
		case tt.want == "" && (failed != nil || !errors.Is(err, tt.err)):
			t.Errorf("%v became %v", tt.err, err)
		case tt.want != "" && (failed == nil || failed.Cause != compile.CauseInput || failed.Message != tt.want):
			t.Errorf("%v became %v", tt.err, err)
		}
	}
}

// TestDispatcherInlines: the finisher's catalog is the one that is stored, and
// its trouble is tried again.
func TestDispatcherInlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		calls := 0
		w.dispatcher.Finisher = inline(func(document []byte) ([]byte, error) {
			if calls++; calls == 1 {
				return nil, fault.New(fault.Unavailable, "the store is busy")
			}
			return []byte(strings.Replace(string(document), `{"name"`, `{"metadata":{"/a":{"x":1}},"name"`, 1)), nil
		})
		c := w.want(t, "a", compile.Waited)
		defer w.start(t.Context())()
		until(t, func() bool { return w.row(t, c.ID).State == compile.Done })
		doc, err := w.docs.Document(t.Context(), w.row(t, c.ID).Catalog)
		if err != nil || !strings.Contains(string(doc), `"metadata":{"/a":{"x":1}}`) || calls != 2 {
			t.Errorf("after %d calls the document is %s, %v", calls, doc, err)
		}
	})
}

// TestEqualCompilationsHaveOneDigest: two versions that give the same catalog
// store it once.
func TestEqualCompilationsHaveOneDigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.start(t.Context())()
		first, err := w.service.Catalog(t.Context(), w.ask("a", "t1"))
		if err != nil {
			t.Fatal(err)
		}
		w.versions.Set(production, version2)
		<-time.After(time.Minute)
		second, err := w.service.Catalog(t.Context(), w.ask("a", "t2"))
		if err != nil {
			t.Fatal(err)
		}
		a, b := first.Compilation, second.Compilation
		if a.Catalog != b.Catalog || a.ID == b.ID || a.UUID == b.UUID || string(first.Catalog) == string(second.Catalog) {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}
