package rest

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// pieceTime is how long a caller may take to accept what was sent.
const pieceTime = time.Minute

// streams is what answers that do not end by themselves need.
type streams struct {
	gate     *gate
	log      *slog.Logger
	stopping <-chan struct{}
}

// eventStream is one caller who follows something.
type eventStream struct {
	streams *streams
	w       http.ResponseWriter
	r       *http.Request
	control *http.ResponseController
	spokeAt time.Time    // something was sent
	checked time.Time    // that the caller may see it
	over    *atomic.Bool // the caller may not what they might when it began
}

// rightsLook is how often a stream looks whether its caller is who they were, and may what they might. A stream ends
// within a second of a change.
const rightsLook = 500 * time.Millisecond

// lastSeen is the number of the event that a caller saw last: who comes back after a broken connection says it in a header.
func lastSeen(r *http.Request, asked string) string {
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		return last
	}
	return asked
}

// opened begins an answer that is a stream.
func opened(h *streams, w http.ResponseWriter, r *http.Request) eventStream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // proxies hold nothing back
	w.WriteHeader(http.StatusOK)
	return eventStream{streams: h, w: w, r: r, control: http.NewResponseController(w), checked: time.Now(), over: new(atomic.Bool)}
}

// follow has run send until nothing more comes. That the caller is gone, or may not see it any more, is how a stream ends; an error of
// the server's own is logged, with what was followed.
func (s *eventStream) follow(ctx context.Context, run func(context.Context) error, followed ...any) (any, error) {
	defer func() { _ = s.control.SetWriteDeadline(time.Time{}) }()
	ctx, end := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { s.watchRights(ctx, end) })
	defer watch.Wait()
	defer end()
	if err := run(ctx); err != nil && ctx.Err() == nil && fault.Of(err) == fault.Internal {
		s.streams.log.WarnContext(ctx, "stream broken off", append(followed, "err", err)...)
	}
	return streamed{}, nil
}

// watchRights ends the stream when its caller was deleted, disabled or given other rights, or their token was
// revoked or has expired, whatever the stream does at that moment. Who may still see it comes back, and is judged anew.
func (s *eventStream) watchRights(ctx context.Context, end context.CancelFunc) {
	actor := fleet.ActorFrom(ctx)
	tick := time.NewTicker(rightsLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now, err := s.streams.gate.shown(s.r); err == nil && reflect.DeepEqual(now, actor) || ctx.Err() != nil {
			continue
		}
		s.over.Store(true)
		end()
		_ = s.control.SetWriteDeadline(time.Now()) // one who does not read is not waited for
		return
	}
}

// errRights ends a stream whose caller has other rights by now.
var errRights = fault.New(fault.Denied, "the rights of who follows have changed")

// rest waits for more, at least for a while, and meanwhile shows that the connection is alive and looks whether
// the caller may still see it: a token may have been revoked.
func (s *eventStream) rest(ctx context.Context, least time.Duration, wait func() error, may func(context.Context) error) error {
	pause := time.NewTimer(least)
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.streams.stopping: // the wait below is short
		return fault.New(fault.Unavailable, "the server is stopping")
	case <-pause.C:
	}
	if err := wait(); err != nil {
		return err
	}
	if time.Since(s.spokeAt) > api.StreamHeartbeat {
		if err := s.send(": still there\n\n"); err != nil {
			return err
		}
	}
	if time.Since(s.checked) < time.Minute {
		return nil
	}
	s.checked = time.Now()
	actor, err := s.streams.gate.shown(s.r)
	if err != nil {
		return err
	}
	return may(fleet.WithActor(ctx, actor))
}

// send hands over text now; a caller who does not take it holds nobody up for long.
func (s *eventStream) send(text string) error {
	s.spokeAt = time.Now()
	_ = s.control.SetWriteDeadline(time.Now().Add(pieceTime)) // a connection that cannot has bounds of its own
	if s.over.Load() {
		return errRights
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
