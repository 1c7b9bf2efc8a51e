package server

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint/bulk"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/wire"
)

// slow is a store of content that takes its time.
type slow struct {
	*castest.Store
	takes time.Duration
}

func (s slow) Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error) {
	select {
	case <-time.After(s.takes):
		return s.Store.Put(ctx, r)
	case <-ctx.Done():
		return "", 0, ctx.Err()
	}
}

// A large message goes through the store of content, which may be slow: the message has time for that, and when it does not get there, the other server
// is asked on.
func TestALargeMessageHasTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes time.Duration
		kind  fault.Kind // 0: it gets there
	}{"a slow store": {5 * time.Second, 0}, "a silent store": {time.Hour, fault.Unavailable}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var hub bus.Local
				content := slow{castest.New(), c.takes}
				here, there := bulk.New(hub.Join(), content), bulk.New(hub.Join(), content)
				o := &others{bus: here, prefix: "t", self: "a", mute: map[string]time.Time{}}
				taken := 0
				if _, err := there.Subscribe(bus.Subscriber{Subject: o.subject("b", deliverWord), Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
					taken = len(data)
					return nil, nil
				}}); err != nil {
					t.Fatal(err)
				}
				m := wire.Message{ID: "1-1-1-1-1", Type: wire.NonBlockingRequest, Sender: wire.Broker, Target: "pcp://web-1/agent"}
				m.Data = []byte(`{"text":"` + strings.Repeat("x", 2*bus.MaxBytes) + `"}`)
				begin := time.Now()
				err := o.pass(t.Context(), "b", m)
				if took := time.Since(begin); took > 30*time.Second {
					t.Errorf("it took %v", took)
				}
				if c.kind == 0 && (err != nil || taken == 0) || c.kind != 0 && !fault.Is(err, c.kind) {
					t.Errorf("%v; %d bytes got there", err, taken)
				}
				m.Data = []byte(`{}`)
				if err := o.pass(t.Context(), "b", m); err != nil {
					t.Errorf("a small message after that: %v", err)
				}
				if err := errors.Join(here.Close(), there.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
