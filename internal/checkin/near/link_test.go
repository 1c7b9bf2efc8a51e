package near_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/event"
)

// Many calls fail at the same moment: together they ask the records twice, not each of them, and none waits for its turn.
func TestThoseWhoDoubtTogetherShareTheQuestions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers bool
		took    time.Duration
	}{"the records are silent": {false, 6 * time.Second}, "the records are slow": {true, 4 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				link := near.NewLink(&near.Link{Log: slog.New(slog.DiscardHandler), Ask: func(ctx context.Context) error {
					asked++
					if c.answers {
						<-time.After(2 * time.Second)
						return nil
					}
					<-ctx.Done()
					return errGone
				}})
				begin := time.Now()
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() {
						if link.Doubt(t.Context()) == c.answers {
							t.Errorf("the link counts as cut: %t", !c.answers)
						}
					})
				}
				all.Wait()
				if took := time.Since(begin); asked > 2 || took > c.took {
					t.Errorf("asked %d times, in %v; want twice, in %v", asked, took, c.took)
				}
			})
		})
	}
}

// Whoever doubts while a question is under way does not take its answer: it was begun before the call failed. One that gives up asks for nobody else.
func TestADoubtIsAnsweredByWhatIsAskedSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, answers := 0, make(chan error)
		link := near.NewLink(&near.Link{Log: slog.New(slog.DiscardHandler), Ask: func(ctx context.Context) error {
			asked++
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		var all sync.WaitGroup
		doubt := func(ctx context.Context, want bool) {
			all.Go(func() {
				if cut := link.Doubt(ctx); cut != want {
					t.Errorf("the link counts as cut: %t", cut)
				}
			})
			synctest.Wait()
		}
		leaving, leave := context.WithCancel(t.Context())
		doubt(leaving, false)
		doubt(t.Context(), false)
		leave()
		synctest.Wait()
		if asked != 2 {
			t.Fatalf("the second one has asked %d times, not once after the first one gave up", asked-1)
		}
		doubt(t.Context(), false)
		answers <- nil // to the second
		synctest.Wait()
		if asked != 3 {
			t.Fatalf("asked %d times: the third one takes an answer of before its doubt", asked)
		}
		answers <- nil
		all.Wait()
	})
}

// mute is an event.Store that gives no answer.
type mute struct{ event.Store }

func (mute) EventSpan(ctx context.Context) (event.Span, error) {
	<-ctx.Done()
	return event.Span{}, ctx.Err()
}

func (mute) AddEvents(ctx context.Context, _ []event.Event, _ time.Time) error {
	<-ctx.Done()
	return ctx.Err()
}

// Nothing about events waits for records that cannot be reached.
func TestNobodyWaitsForTheStreamWhileTheWayIsCut(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	c.cut(t)
	stream := near.NewStream(mute{}, near.Intake{Link: c.link, Queue: c.disk, Now: time.Now})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := stream.EventSpan(ctx); !errors.Is(err, near.ErrCut) {
		t.Errorf("the span: %v", err)
	}
	if err := stream.AddEvents(ctx, nil, time.Now()); !errors.Is(err, near.ErrCut) {
		t.Errorf("what happens to agents: %v", err)
	}
}

// stubborn is a queue that keeps what is to be set aside.
type stubborn struct{ near.Queue }

func (stubborn) SetAside(uint64, string) error { return errors.New("the disk is full") }

// That a piece is set aside is said when it is.
func TestWhatCannotBeSetAsideIsNotSaidToBe(t *testing.T) {
	t.Parallel()
	c := newCounter(t, filepath.Join(t.TempDir(), "near.db"))
	if err := c.disk.Add(near.Piece{Kind: "riddle", Node: "a.test"}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	courier := near.Courier{Link: c.link, Queue: stubborn{c.disk}, Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))}
	err := courier.Deliver(t.Context())
	if err == nil || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), "riddle") ||
		strings.Contains(log.String(), "set aside") {
		t.Errorf("%v; the log says %s", err, log.String())
	}
	if load := c.disk.Load(); load.Pieces != 1 || load.Aside != 0 {
		t.Errorf("queued is %+v", load)
	}
}
