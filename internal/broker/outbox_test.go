package broker

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/wire"
)

// TestOutboxAgainstAModel: order is kept, bounds hold, no byte is lost or counted twice.
func TestOutboxAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := &budget{limit: 20_000}
		all.take(rapid.Int64Range(0, 15_000).Draw(t, "others"))
		others := all.used.Load()
		o := &outbox{limit: rapid.Int64Range(600, 10_000).Draw(t, "limit"), all: all}
		var model []wire.Message
		var bytes int64
		awake, over := false, false
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				m := wire.Message{Data: wire.Data(strings.Repeat("x", rapid.IntRange(0, 4000).Draw(t, "size")))}
				wake, why := o.push(m)
				expected := taken
				switch {
				case over:
					expected = closed
				case bytes > 0 && bytes+costOf(m) > o.limit:
					expected = full
				case others+bytes+costOf(m) > all.limit:
					expected = crowded
				}
				if why != expected || wake != (why == taken && !awake) {
					t.Fatalf("push: %v, wake %v; want %v", why, wake, expected)
				}
				if why == taken {
					model, bytes, awake = append(model, m), bytes+costOf(m), true
				}
			},
			"next": func(t *rapid.T) {
				m, ok := o.next()
				if ok != (len(model) > 0) {
					t.Fatalf("next: %v of %d", ok, len(model))
				}
				if !ok {
					awake = false
					return
				}
				if string(m.Data) != string(model[0].Data) {
					t.Fatal("the wrong message")
				}
				model, bytes = model[1:], bytes-costOf(m)
			},
			"close": func(*rapid.T) { o.close(); over = true },
			"drop":  func(*rapid.T) { o.drop(); model, bytes, over = nil, 0, true },
			"": func(t *rapid.T) {
				if o.bytes != bytes || all.used.Load() != others+bytes {
					t.Fatalf("%d bytes here, %d in all; want %d, %d", o.bytes, all.used.Load(), bytes, others+bytes)
				}
				if len(model) == 0 && o.queue != nil {
					t.Fatal("an empty outbox holds memory")
				}
			},
		})
	})
}
