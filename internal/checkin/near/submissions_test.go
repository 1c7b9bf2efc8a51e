package near_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// takes is a factqueue.Service behind a link, and the inventory that queued submissions come to.
type takes struct {
	gone *bool
	got  []factqueue.Set
}

func (s *takes) answer(set factqueue.Set) (factqueue.Answer, error) {
	if *s.gone {
		return factqueue.Answer{}, errGone
	}
	return factqueue.Answer{Number: set.Number, Seq: 7}, nil
}

func (s *takes) Put(_ context.Context, set factqueue.Set) (factqueue.Answer, error) {
	return s.answer(set)
}

func (s *takes) Patch(_ context.Context, p factqueue.Patch) (factqueue.Answer, error) {
	return s.answer(p.Set)
}

func (s *takes) State(_ context.Context, node fleet.Certname) (factqueue.Answer, error) {
	return s.answer(factqueue.Set{Node: node})
}

func (s *takes) SaveFacts(_ context.Context, set factqueue.Set) (factqueue.Stored, error) {
	s.got = append(s.got, set)
	return factqueue.Stored{Set: set}, nil
}

// All facts of an agent are queued and delivered with their number and their time; of a difference the agent is told to send all.
func TestSubmissions(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	far := &takes{gone: &c.gone}
	s := near.Submissions{Service: far, Intake: c.checkins.Intake}
	set := factqueue.Set{Node: "a.test", Number: 5, Values: json.RawMessage(`{"a":"<1>"}`)}
	if a, err := s.Put(t.Context(), set); err != nil || a.Queued || a.Seq != 7 {
		t.Errorf("while the link is there: %+v, %v", a, err)
	}
	c.cut(t)
	set.Number = 6
	a, err := s.Put(t.Context(), set)
	if err != nil || !a.Queued || a.Number != 6 || a.Digest != fleet.DigestOf(set.Values) {
		t.Errorf("while it is cut: %+v, %v", a, err)
	}
	if _, err := s.Patch(t.Context(), factqueue.Patch{Set: set}); fault.Of(err) != fault.Conflict {
		t.Errorf("a difference: %v", err)
	}
	if _, err := s.State(t.Context(), "a.test"); fault.Of(err) != fault.NotFound {
		t.Errorf("what is known: %v", err)
	}
	courier := &near.Courier{Link: c.link, Queue: c.disk, Submissions: far, Log: slog.New(slog.DiscardHandler)}
	c.gone = false
	ending, cancel := context.WithCancel(t.Context())
	cancel()
	_ = c.link.Run(ending) // looks once
	if err := courier.Deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(far.got) != 1 || far.got[0].Number != 6 || !far.got[0].AcceptedAt.Equal(c.now) || string(far.got[0].Values) != string(set.Values) {
		t.Errorf("delivered: %+v", far.got)
	}
	if load := c.disk.Load(); load.Pieces+load.Aside != 0 {
		t.Errorf("something stays behind: %+v", load)
	}
}
