package checkin_test

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
)

const (
	web    fleet.Certname = "web-1.example"
	newest fleet.Digest   = "newest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is what the flow asks; each field is what it is answered.
type world struct {
	*inventorytest.Fake
	stranger bool                         // the node has no certificate
	released bool                         // the node is in released mode
	head     *deliver.Generation          // what was released to it
	kept     fleet.Environment            // of the catalog that it keeps while a newer one is held
	decided  fleet.Environment            // by groups
	deployed map[fleet.Environment]string // versions
	held     int                          // how often its standing was asked for
	asked    []compile.Ask
	again    fleet.Digest // the catalog that it is given again
}

func newWorld() *world {
	return &world{Fake: inventorytest.New(), deployed: map[fleet.Environment]string{"production": "1", "testing": "2"}}
}

// noProgram is a server without a program for trusted data.
func noProgram(context.Context, fleet.Certname) (json.RawMessage, error) {
	return nil, nil //nolint:nilnil // there is no program
}

func (w *world) service() checkin.Service {
	return checkin.Service{
		Trust:        checkin.Trust{Authority: w, External: noProgram},
		Environments: checkin.Environments{Standings: w, Groups: w, Versions: w, Nodes: w},
		Facts:        w,
		Delivery:     w,
		Catalogs:     w,
		Documents:    w,
		Server:       "tutti.example",
		Now:          func() time.Time { return noon },
	}
}

func (w *world) Issued(_ context.Context, node fleet.Certname) (*x509.Certificate, error) {
	if w.stranger {
		return nil, fault.New(fault.NotFound, "%s has no certificate", node)
	}
	return &x509.Certificate{Subject: pkix.Name{CommonName: string(node)}}, nil
}

func (w *world) Trusted(cert *x509.Certificate, _ json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"certname":"` + cert.Subject.CommonName + `"}`), nil
}

func (w *world) Held(_ context.Context, node fleet.Certname) (deliver.Standing, bool, error) {
	w.held++
	return deliver.Standing{Node: node, Head: w.head}, w.released, nil
}

func (w *world) PointerOf(_ context.Context, s deliver.Standing) (deliver.Pointer, error) {
	if s.Head == nil {
		return deliver.Pointer{}, fault.New(fault.NotFound, "nothing was released")
	}
	return deliver.Pointer{Catalog: s.Head.Digest, Environment: s.Head.Environment, Version: s.Head.Version, UUID: s.Head.UUID}, nil
}

func (w *world) OnHold(context.Context, fleet.Certname) (l deliver.Loss, ok bool, err error) {
	l.Kept.Environment, l.Kept.Version = w.kept, "kept"
	return l, w.kept != "", nil
}

func (w *world) GivenAgain(_ context.Context, _ fleet.Certname, catalog fleet.Digest) error {
	w.again = catalog
	return nil
}

func (w *world) Environment(context.Context, fleet.Certname) (fleet.Environment, error) {
	return w.decided, nil
}

func (w *world) Refresh(_ context.Context, env fleet.Environment) (code.Version, error) {
	version, there := w.deployed[env]
	if !there {
		return code.Version{}, fault.New(fault.NotFound, "no code")
	}
	return code.Version{ID: fleet.Digest(version), Environment: env}, nil
}

func (w *world) Catalog(_ context.Context, a compile.Ask) (compile.Answer, error) {
	w.asked = append(w.asked, a)
	c := compile.Compilation{Environment: a.Environment, Version: a.Version, Catalog: newest}
	if w.kept != "" {
		c.Environment = w.kept
	}
	return compile.Answer{Catalog: []byte("compiled"), Compilation: c, Held: w.kept != ""}, nil
}

func (w *world) Document(context.Context, fleet.Digest) ([]byte, error) {
	document, _, err := catalog.Normalise(json.RawMessage(`{"resources":[],"edges":[]}`), nil)
	return document, err
}

func told(values string) *facts.Told {
	return &facts.Told{Certname: web, Values: json.RawMessage(values), Digest: fleet.DigestOf([]byte(values))}
}

// Everything about a request is found out once, and travels with it.
func TestAVisitIsResolvedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s := w.service()
	visit, err := s.Resolve(t.Context(), checkin.Request{
		Node:        web,
		Requested:   "testing",
		Facts:       told(`{"a":1}`),
		Transaction: "tx",
		Static:      true,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := checkin.Visit{
		Request:  checkin.Request{Node: web, Requested: "testing", Transaction: "tx", Static: true},
		Place:    checkin.Place{Standing: deliver.Standing{Node: web}, Environment: "testing", Version: "2"},
		FactsSeq: 1, Trusted: json.RawMessage(`{"certname":"web-1.example"}`),
	}
	if diff := cmp.Diff(want, visit); diff != "" {
		t.Errorf("visit (-want +got):\n%s", diff)
	}
	answer, err := s.Catalog(t.Context(), visit)
	if err != nil || string(answer.Document) != "compiled" || answer.CodeID != "2" || answer.Environment != "testing" || w.again != newest {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if w.held != 1 {
		t.Errorf("the standing was asked for %d times", w.held)
	}
	asked := compile.Ask{
		Node:        web,
		Environment: "testing",
		Version:     "2",
		FactsSeq:    1,
		Transaction: "tx",
		Trusted:     visit.Trusted,
		Static:      true,
	}
	if diff := cmp.Diff([]compile.Ask{asked}, w.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	stored, err := w.Facts(t.Context(), web)
	if err != nil || stored.Environment != "testing" || stored.Producer != "tutti.example" || !strings.Contains(string(stored.Values), `"trusted"`) {
		t.Errorf("facts %+v, %v", stored, err)
	}
}

// The facts of a node whose certificate is not known are worth having, but it gets no catalog.
func TestAStrangersFactsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stranger = true
	_, err := w.service().Resolve(t.Context(), checkin.Request{Node: web, Requested: "production", Facts: told(`{"a":1}`)})
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("resolved: %v", err)
	}
	if stored, err := w.Facts(t.Context(), web); err != nil || string(stored.Values) != `{"a":1}` {
		t.Errorf("facts %s, %v", stored.Values, err)
	}
}

func TestTheEnvironmentOfANode(t *testing.T) {
	t.Parallel()
	released := &deliver.Generation{Catalog: deliver.Catalog{Environment: "released", Version: "9"}}
	for name, c := range map[string]struct {
		change    func(*world)
		requested fleet.Environment
		want      fleet.Environment
		kind      fault.Kind // of the error, if want is empty
	}{
		"as it asks":               {func(*world) {}, "testing", "testing", 0},
		"it does not ask":          {func(*world) {}, "", checkin.DefaultEnvironment, 0},
		"groups decide":            {func(w *world) { w.decided = "testing" }, "production", "testing", 0},
		"groups name what is not":  {func(w *world) { w.decided = "nope" }, "production", "", fault.Invalid},
		"it names what is not":     {func(*world) {}, "nope", "", fault.NotFound},
		"released":                 {func(w *world) { w.released, w.head, w.decided = true, released, "testing" }, "production", "released", 0},
		"released mode, with none": {func(w *world) { w.released, w.decided = true, "testing" }, "production", "testing", 0},
	} {
		w := newWorld()
		c.change(w)
		places := checkin.Environments{Standings: w, Groups: w, Versions: w, Nodes: w}
		place, err := places.Of(t.Context(), web, c.requested)
		if place.Environment != c.want || (c.want == "") != (err != nil) || err != nil && fault.Of(err) != c.kind {
			t.Errorf("%s: %+v, %v", name, place, err)
		}
	}
}

// Three other questions about the environment follow the same rule.
func TestOtherQuestionsAboutTheEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld()
	places := checkin.Environments{Standings: w, Groups: w, Versions: w, Nodes: w}
	w.released, w.head = true, &deliver.Generation{Catalog: deliver.Catalog{Environment: "released"}}
	is := func(what string, got fleet.Environment, err error, want fleet.Environment) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", what, got, err, want)
		}
	}
	env, err := places.Live(t.Context(), web, "testing")
	is("live", env, err, "testing")
	env, err = places.LiveOfKnown(t.Context(), web)
	is("of one that nobody knows", env, err, checkin.DefaultEnvironment)
	env, err = places.OfFacts(t.Context(), web, "testing")
	is("facts of one that nobody knows", env, err, "released")
	if _, _, err := w.SaveFacts(t.Context(), inventory.FactSet{
		Certname:    web,
		Environment: "testing",
		Values:      json.RawMessage(`{}`),
		ReceivedAt:  noon,
	}); err != nil {
		t.Fatal(err)
	}
	env, err = places.LiveOfKnown(t.Context(), web)
	is("of a known one", env, err, "testing")
	env, err = places.OfFacts(t.Context(), web, "other")
	is("facts of a known one", env, err, "testing")
	w.decided = "production"
	env, err = places.LiveOfKnown(t.Context(), web)
	is("groups decide", env, err, "production")
}

// A node that only wants to know whether its environment is another one is told so, unless it keeps a catalog of the one that
// it names.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check    bool
		released bool
		kept     fleet.Environment
		want     bool
	}{
		"it takes any":         {false, false, "", false},
		"elsewhere":            {true, false, "", true},
		"keeps what it names":  {true, false, "production", false},
		"keeps another":        {true, false, "third", true},
		"released from others": {true, true, "production", true},
	} {
		w := newWorld()
		w.kept = c.kept
		visit := checkin.Visit{Request: checkin.Request{
			Node:             web,
			Requested:        "production",
			CheckEnvironment: c.check,
		}, Place: checkin.Place{Environment: "testing", Released: c.released}}
		if got, err := w.service().Elsewhere(t.Context(), visit); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What was released is given without a compilation; a node in released mode that has nothing is told so.
func TestReleasedNodes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.released = true
	s := w.service()
	visit, err := s.Resolve(t.Context(), checkin.Request{Node: web, Requested: "production"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Catalog(t.Context(), visit); !fault.Is(err, fault.Conflict) {
		t.Errorf("with nothing released: %v", err)
	}
	if _, ok, err := s.HeldAt(t.Context(), web); ok || err != nil {
		t.Errorf("its files are held: %v", err)
	}
	w.head = &deliver.Generation{Catalog: deliver.Catalog{Environment: "testing", Version: "9", UUID: "u"}}
	if visit, err = s.Resolve(t.Context(), checkin.Request{Node: web, Requested: "production"}); err != nil {
		t.Fatal(err)
	}
	answer, err := s.Catalog(t.Context(), visit)
	if err != nil || answer.Environment != "testing" || answer.CodeID != "9" || len(w.asked) != 0 {
		t.Errorf("answer %+v, %v; %d were asked for", answer, err, len(w.asked))
	}
	if at, ok, err := s.HeldAt(t.Context(), web); !ok || err != nil || at != (checkin.Code{Environment: "testing", Version: "9"}) {
		t.Errorf("files: %+v, %v", at, err)
	}
}
