package near_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
	"github.com/tutti-project/tutti/internal/store/local"
)

// office is the records, as far as catalogs are asked of them.
type office struct {
	pointers  map[fleet.Certname]deliver.Pointer
	documents map[fleet.Digest][]byte
	gone      *bool
	meanwhile func() // what happens between an answer and its arrival
}

func (o *office) Pointer(_ context.Context, node fleet.Certname) (deliver.Pointer, error) {
	if *o.gone {
		return deliver.Pointer{}, errGone
	}
	p, ok := o.pointers[node]
	if o.meanwhile != nil {
		o.meanwhile()
	}
	if !ok {
		return p, fault.New(fault.NotFound, "%s may have nothing", node)
	}
	return p, nil
}

func (o *office) MayHave(ctx context.Context, node fleet.Certname, catalog fleet.Digest) (bool, error) {
	p, err := o.Pointer(ctx, node)
	return p.Catalog == catalog, err
}

func (o *office) Document(_ context.Context, d fleet.Digest) ([]byte, error) {
	return o.documents[d], nil
}

// release makes a text the catalog of a node.
func (o *office) release(node fleet.Certname, mode deliver.Mode, title string) deliver.Pointer {
	document, digest, err := catalog.Normalise(json.RawMessage(`{"name":"`+string(node)+`","resources":[{"type":"Notify","title":"`+title+
		`"}],"edges":[],"classes":[]}`), nil)
	if err != nil {
		panic(err)
	}
	p := deliver.Pointer{Mode: mode, Catalog: digest, Environment: "production", Version: fleet.DigestOf([]byte(title)), UUID: "uuid of " + title}
	o.pointers[node], o.documents[p.Catalog] = p, document
	return p
}

// Held, OnHold and the rest are what a checkin.Service asks: only that nothing is answered counts here.
type away struct{ gone *bool }

func (a away) OrOwn(context.Context, fleet.Certname, fleet.Environment) (checkin.Place, error) {
	if *a.gone {
		return checkin.Place{}, errGone
	}
	return checkin.Place{Environment: "production"}, nil
}

func (a away) Catalog(context.Context, compile.Ask) (compile.Answer, error) {
	return compile.Answer{}, errGone
}

// says is checkin.Authority.
type says struct{}

func (says) Issued(context.Context, fleet.Certname) (*x509.Certificate, error) {
	return nil, errGone
}

func (says) Trusted(*x509.Certificate, json.RawMessage) (json.RawMessage, error) {
	return json.RawMessage(`{"certname":"x"}`), nil
}

// counter is a near server's part that gives out catalogs.
type counter struct {
	office   *office
	gone     bool
	now      time.Time
	disk     *local.Store
	link     *near.Link
	keeper   *near.Keeper
	checkins *near.Checkins
	delivers near.Deliveries
}

func newCounter(t *testing.T, path string) *counter {
	t.Helper()
	c := &counter{now: time.Date(2026, 11, 28, 23, 0, 0, 0, time.UTC)}
	c.office = &office{pointers: map[fleet.Certname]deliver.Pointer{}, documents: map[fleet.Digest][]byte{}, gone: &c.gone}
	c.open(t, path)
	return c
}

func (c *counter) open(t *testing.T, path string) {
	t.Helper()
	var err error
	if c.disk, err = local.Open(path, local.Config{MostBytes: 1 << 20, Seal: plainly{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.disk.Close() })
	log, now := slog.New(slog.DiscardHandler), func() time.Time { return c.now }
	c.link = near.NewLink(&near.Link{Log: log, Now: now, Ask: func(context.Context) error {
		if c.gone {
			return errGone
		}
		return nil
	}})
	if c.keeper, err = near.NewKeeper(&near.Keeper{
		Link: c.link, Shelf: c.disk, Pointers: c.office, Documents: c.office, For: time.Hour, Now: now, Log: log,
	}); err != nil {
		t.Fatal(err)
	}
	in := near.Intake{Link: c.link, Queue: c.disk, Now: now}
	witness := &near.Witness{Intake: in, Log: log}
	service := checkin.Service{
		Trust: checkin.Trust{Authority: says{}, External: func(context.Context, fleet.Certname) (json.RawMessage, error) { return nil, nil }}, Now: now,
		Facts: near.RunFacts{Facts: inventorytest.New(), Intake: in}, Environments: away{&c.gone}, Catalogs: away{&c.gone},
	}
	c.checkins = &near.Checkins{Service: service, Keeper: c.keeper, Witness: witness, Intake: in}
	c.delivers = near.Deliveries{Service: c.office, Keeper: c.keeper, Witness: witness, Intake: in}
}

// ask asks for a node's catalog, with facts.
func (c *counter) ask(t *testing.T, r checkin.Request) (checkin.Answer, error) {
	t.Helper()
	told, err := facts.Parse(`{"name":"` + string(r.Node) + `","values":{"a":1},"timestamp":"2026-11-28T22:59:00Z"}`)
	if err != nil {
		t.Fatal(err)
	}
	r.Facts = &told
	v, err := c.checkins.Resolve(t.Context(), r)
	if err != nil {
		return checkin.Answer{}, err
	}
	return c.checkins.Catalog(t.Context(), v)
}

func own(node fleet.Certname) checkin.Request {
	return checkin.Request{Node: node, Certificate: &x509.Certificate{}, Requested: "production"}
}

func (c *counter) cut(t *testing.T) {
	t.Helper()
	c.gone = true
	if !c.link.Doubt(t.Context()) {
		t.Fatal("nobody notices")
	}
}

func (c *counter) back(t *testing.T) {
	t.Helper()
	c.gone = false
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.link.Run(ended); err != nil { // it asks once
		t.Fatal(err)
	}
	if _, cut := c.link.Cut(); cut {
		t.Fatal("it stays cut")
	}
}

// kinds counts what is queued.
func (c *counter) kinds(t *testing.T) map[near.Kind]int {
	t.Helper()
	all := map[near.Kind]int{}
	some, err := c.disk.Next(0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range some {
		all[p.Kind]++
	}
	return all
}

func refresh(t *testing.T, c *counter, nodes ...fleet.Certname) {
	t.Helper()
	for _, n := range nodes {
		c.keeper.Asked(n)
		if err := c.keeper.Refresh(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// Each node gets its own catalog, the newest that was known: also a released one, and one that came while it did not ask. It is told of.
func TestKeptCatalogs(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.office.release("a.test", deliver.Live, "old")
	c.office.release("b.test", deliver.Released, "of b")
	refresh(t, c, "a.test", "b.test")
	a := c.office.release("a.test", deliver.Live, "of a")
	refresh(t, c, "a.test")
	c.office.release("a.test", deliver.Live, "after the cut")
	c.cut(t)
	for node, title := range map[fleet.Certname]string{"a.test": "of a", "b.test": "of b"} {
		got, err := c.ask(t, own(node))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(got.Document); !strings.Contains(text, `"title":"`+title+`"`) || !strings.Contains(text, "uuid of "+title) ||
			got.Environment != "production" || got.CodeID != string(fleet.DigestOf([]byte(title))) {
			t.Errorf("%s gets %+v: %s", node, got, text)
		}
	}
	if kinds := c.kinds(t); kinds[near.Facts] != 2 || kinds[near.Events] != 2 {
		t.Errorf("queued is %v: not the facts of two requests, and a word of both catalogs", kinds)
	}
	if p, err := c.delivers.Pointer(t.Context(), "a.test"); err != nil || p != a {
		t.Errorf("a.test may have %+v, %v", p, err)
	}
	for node, may := range map[fleet.Certname]bool{"a.test": true, "b.test": false} {
		if got, err := c.delivers.MayHave(t.Context(), node, a.Catalog); got != may || err != nil {
			t.Errorf("%s may have the catalog of a.test: %v, %v", node, got, err)
		}
	}
	if kinds := c.kinds(t); kinds[near.Events] != 3 {
		t.Errorf("queued is %v: there is no word of the catalog that an agent fetches", kinds)
	}
}

// Who is not the node gets nothing, nor a node of which nothing is kept, nor anybody after too long; and what cannot be told of is not given.
func TestWhatIsNotGiven(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.office.release("a.test", deliver.Live, "of a")
	refresh(t, c, "a.test")
	c.cut(t)
	refused := func(what, word string, r checkin.Request) {
		t.Helper()
		answer, err := c.ask(t, r)
		if answer.Document != nil || fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), word) || fault.RetryAfter(err) == 0 {
			t.Errorf("%s: %s, %v", what, answer.Document, err)
		}
	}
	somebody := own("a.test")
	somebody.Certificate = nil
	refused("an administrator asks for the node", "nobody else", somebody)
	refused("nothing is kept", "keeps no catalog of b.test", own("b.test"))
	c.now = c.now.Add(2 * time.Hour)
	refused("after too long", "near_catalogs_for", own("a.test"))
	c.now = c.now.Add(-2 * time.Hour)
	for c.disk.Add(near.Piece{Kind: near.Report, Node: "c.test", Body: []byte(rubbish())}) == nil { //nolint:revive // until it is nearly full
	}
	for c.disk.Add(near.Piece{Kind: near.Report, Node: "c.test"}) == nil { //nolint:revive // until it is full
	}
	refused("the queue is full", "near_queue_bytes", own("a.test"))
}

// Whoever asks for a node and is not that node is told to come again, whatever is asked: neither answered as the node nor refused for good.
func TestWhatOthersAreToldMeanwhile(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.office.release("a.test", deliver.Live, "of a")
	refresh(t, c, "a.test")
	in := near.Intake{Link: c.link, Queue: c.disk, Now: func() time.Time { return c.now }}
	places := near.Places{Environments: checkin.Environments{Standings: standings{}}, Keeper: c.keeper, Intake: in}
	roles := near.Roles{Intake: in, Certificate: func(_ context.Context, who fleet.Actor) (fleet.Actor, error) {
		return who, errGone
	}}
	somebody := own("a.test")
	somebody.Certificate = nil
	before := checkin.Visit{Request: somebody, Place: checkin.Place{Environment: "production"}} // resolved before the cut
	told, err := facts.Parse(`{"name":"a.test","values":{"a":1}}`)
	if err != nil {
		t.Fatal(err)
	}
	somebody.Facts = &told
	c.cut(t)
	as := func(kind fleet.ActorKind, name string) context.Context {
		return fleet.WithActor(t.Context(), fleet.Actor{Kind: kind, Name: name})
	}
	for what, ask := range map[string]func() error{
		"the catalog": func() error {
			_, err := c.checkins.Catalog(t.Context(), before)
			return err
		},
		"the environment, as an administrator": func() error {
			_, err := places.Of(as(fleet.UserActor, "a.test"), "a.test", "production")
			return err
		},
		"the environment, as another node": func() error {
			_, err := places.Of(as(fleet.NodeActor, "b.test"), "a.test", "production")
			return err
		},
		"what its roles allow": func() error {
			_, err := roles.Of(t.Context(), fleet.Actor{Kind: fleet.NodeActor, Name: "b.test"})
			return err
		},
		"to store facts": func() error { return c.checkins.SaveFacts(t.Context(), somebody) },
	} {
		if err := ask(); fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 || !strings.Contains(fault.Detail(err), "nobody else") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if place, err := places.Of(as(fleet.NodeActor, "a.test"), "a.test", "production"); err != nil || place.Environment != "production" {
		t.Errorf("the node itself: %+v, %v", place, err)
	}
}

// standings is away.
type standings struct{ checkin.Standings }

func (standings) Held(context.Context, fleet.Certname) (deliver.Standing, bool, error) {
	return deliver.Standing{}, false, errGone
}

// A node that was given something newer than what is kept for it does not get the older one: it goes on with its own. Nor does anybody after a
// start, before the records were asked.
func TestNothingOlderThanWhatANodeHas(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "near.db")
	c := newCounter(t, path)
	c.office.release("a.test", deliver.Live, "old")
	refresh(t, c, "a.test")
	behind := func(when string) {
		t.Helper()
		c.cut(t)
		defer c.back(t)
		if answer, err := c.ask(t, own("a.test")); fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "may be older") {
			t.Errorf("%s: %s, %v", when, answer.Document, err)
		}
		if p, err := c.delivers.Pointer(t.Context(), "a.test"); fault.Of(err) != fault.Unavailable {
			t.Errorf("%s: it may have %+v, %v", when, p, err)
		}
		if at, ok, err := c.checkins.HeldAt(t.Context(), "a.test"); fault.Of(err) != fault.Unavailable {
			t.Errorf("%s: it gets the files of %+v, %v, %v", when, at, ok, err)
		}
	}
	given := func(when, title string) {
		t.Helper()
		if err := c.keeper.Refresh(t.Context(), "a.test"); err != nil {
			t.Fatal(err)
		}
		c.cut(t)
		defer c.back(t)
		if answer, err := c.ask(t, own("a.test")); err != nil || !strings.Contains(string(answer.Document), `"title":"`+title+`"`) {
			t.Errorf("%s: %s, %v", when, answer.Document, err)
		}
	}
	c.office.release("a.test", deliver.Live, "new")
	c.keeper.Asked("a.test")
	behind("it was given the new one")
	given("the new one is kept", "new")

	c.office.meanwhile = func() { // an answer that was asked for before says nothing of what was given since
		c.office.meanwhile = nil
		c.office.release("a.test", deliver.Live, "newest")
		c.keeper.Asked("a.test")
	}
	if err := c.keeper.Refresh(t.Context(), "a.test"); err != nil {
		t.Fatal(err)
	}
	behind("it was given the newest one while the keeper asked")
	given("the newest one is kept", "newest")

	if err := c.disk.Close(); err != nil {
		t.Fatal(err)
	}
	c.open(t, path)
	behind("after a start")
	given("after a start, and an answer", "newest")
}

// rubbish does not get smaller when it is compressed.
func rubbish() string {
	var b strings.Builder
	for i := range 1500 {
		b.WriteString(string(fleet.DigestOf([]byte{byte(i), byte(i >> 8)})))
	}
	return b.String()
}

// A call that waits for records that say nothing is ended when the link counts as cut, and a request of before goes on with what is kept.
func TestACallIsEndedByTheCut(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	during, done := c.link.While(t.Context())
	defer done()
	c.cut(t)
	<-during.Done()
	if !errors.Is(context.Cause(during), near.ErrCut) {
		t.Errorf("it ended with %v", context.Cause(during))
	}
	c.back(t)
	again, done := c.link.While(t.Context())
	defer done()
	if again.Err() != nil {
		t.Error("calls are ended after the cut")
	}
}
