package broker_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

func TestPing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p *broker.Pinger
		late := map[fleet.Certname]time.Duration{"fast": 2 * time.Millisecond, "slow": time.Second, "mute": time.Hour}
		p = &broker.Pinger{Ask: func(_ context.Context, node fleet.Certname, r pxp.Request) error {
			takes, connected := late[node]
			if !connected {
				return fault.New(fault.NotFound, "not connected")
			}
			go func() {
				<-time.After(takes)
				p.Answered("stranger", r.Transaction)
				if first, again := p.Answered(node, r.Transaction), p.Answered(node, r.Transaction); !first || !again {
					t.Error("the answer to a ping is none")
				}
			}()
			return nil
		}}
		if p.Answered("fast", "f0e1") {
			t.Error("the answer to a run is one to a ping")
		}
		ping := func(timeout time.Duration, nodes ...fleet.Certname) (map[fleet.Certname]time.Duration, time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			begun := time.Now()
			return p.Ping(ctx, nodes), time.Since(begun)
		}
		got, took := ping(time.Minute, "fast", "gone", "slow")
		if diff := cmp.Diff(map[fleet.Certname]time.Duration{"fast": 2 * time.Millisecond, "slow": time.Second}, got); diff != "" || took != time.Second {
			t.Errorf("took %s (-want +got):\n%s", took, diff)
		}
		got, took = ping(5*time.Second, "fast", "mute")
		if diff := cmp.Diff(map[fleet.Certname]time.Duration{"fast": 2 * time.Millisecond}, got); diff != "" || took != 5*time.Second {
			t.Errorf("took %s (-want +got):\n%s", took, diff)
		}
		for _, nobody := range [][]fleet.Certname{nil, {"gone"}} {
			if got, took := ping(time.Minute, nobody...); len(got) != 0 || took != 0 {
				t.Errorf("%v: %v after %s", nobody, got, took)
			}
		}
		<-time.After(2 * time.Hour) // what is late finds nobody
	})
}
