package hint //nolint:testpackage // looks at for how many numbers somebody waits

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// relays are servers that hear each other.
func relays(t *testing.T, n int) []*Relay {
	t.Helper()
	all := make([]*Relay, n)
	for i := range all {
		all[i] = NewRelay(func(data []byte) error {
			for _, other := range all {
				if other != all[i] {
					other.Heard(data)
				}
			}
			return nil
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, r := range all {
		running.Go(func() {
			if err := r.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return all
}

// What happens on one server wakes who waits on another one, and only who waits for that.
func TestAHintReachesOtherServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		both := relays(t, 2)
		var here, there, previews Board
		here.Join(both[0], "job")
		there.Join(both[1], "job")
		previews.Join(both[1], "preview")
		begin, waited := time.Now(), make(chan time.Duration, 3)
		for i, on := range []*Board{&there, &there, &previews} {
			go func() {
				if err := on.Wait(ctx, int64(i%2+1), notYet); err != nil {
					t.Error(err)
				}
				waited <- time.Since(begin)
			}()
		}
		synctest.Wait()
		here.Tell(1)
		synctest.Wait()
		if got := <-waited; got != 0 {
			t.Errorf("who waits on the other server waited %s", got)
		}
		both[1].Missed()
		for range 2 {
			if got := <-waited; got != 0 {
				t.Errorf("who may have missed a hint waited %s", got)
			}
		}
		there.wantWaiters(t, 0)
	})
}

// Many hints become few messages, and more than can be told say that any may be meant.
func TestHintsAreGathered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var messages int
		heard := map[string]int{}
		listener := NewRelay(nil)
		listener.Join("few", func(id string) { heard["few "+id]++ })
		listener.Join("many", func(id string) { heard["many "+id]++ })
		r := NewRelay(func(data []byte) error {
			messages++
			listener.Heard(data)
			return errors.New("a hint may be lost")
		})
		few, many, unknown := r.Join("few", nil), r.Join("many", nil), r.Join("unknown", nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		few("0")
		synctest.Wait()
		if messages != 1 || heard["few 0"] != 1 {
			t.Errorf("the first hint is not sent at once: %d messages, %v", messages, heard)
		}
		for range 3 {
			for i := range maxIDs + 1 {
				few("1")
				many(fmt.Sprint(i))
			}
		}
		unknown("1")
		<-time.After(time.Second)
		if messages != 2 || heard["few 1"] != 1 || heard["many "] != 1 || len(heard) != 3 {
			t.Errorf("%d messages, heard %v", messages, heard)
		}
		listener.Heard([]byte("no JSON"))
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A server that is alone has no relay.
func TestAServerThatIsAlone(t *testing.T) {
	t.Parallel()
	var none *Relay
	var board Board
	board.Join(none, "job")
	board.Tell(1)
	none.Join("job", func(string) { t.Error("it hears itself") })("1")
}
