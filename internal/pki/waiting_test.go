package pki

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
)

// TestWaitingRoomIsFair holds the room against a list that is searched from the front.
func TestWaitingRoomIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most, ofOne = 8, 4
		room := newWaitingRoom(most, ofOne)
		var model []RequestHead
		of := func(from string) (n int) {
			for _, head := range model {
				if head.From == from {
					n++
				}
			}
			return n
		}
		evict := func(from func(RequestHead) bool) fleet.Certname {
			at := slices.IndexFunc(model, from)
			name := model[at].Certname
			model = slices.Delete(model, at, at+1)
			return name
		}
		for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := fleet.Certname(fmt.Sprintf("n%d", rapid.IntRange(0, 20).Draw(t, "name")))
			was := slices.IndexFunc(model, func(h RequestHead) bool { return h.Certname == name })
			if was >= 0 {
				model = slices.Delete(model, was, was+1)
			}
			if rapid.IntRange(0, 3).Draw(t, "leave") == 0 {
				room.remove(name)
				continue
			}
			head := RequestHead{Certname: name, From: fmt.Sprintf("a%d", rapid.IntRange(0, 4).Draw(t, "from")), ReceivedAt: time.Unix(int64(step), 0)}
			model = append(model, head)
			var want []fleet.Certname
			for of(head.From) > ofOne {
				want = append(want, evict(func(h RequestHead) bool { return h.From == head.From }))
			}
			for len(model) > most {
				top := 0
				for _, h := range model {
					top = max(top, of(h.From))
				}
				want = append(want, evict(func(h RequestHead) bool { return of(h.From) == top }))
			}
			if got := room.add(head); !slices.Equal(got, want) {
				t.Fatalf("%v makes %v go, want %v", head, got, want)
			}
		}
		if names := room.since(time.Unix(1000, 0), ""); len(names) != len(model) || len(room.crowd) != len(room.origins) {
			t.Fatalf("%d wait, want %d; %d origins, %d in the crowd", len(names), len(model), len(room.origins), len(room.crowd))
		}
	})
}
