package brokertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire"
)

// Roster is broker.Roster in memory.
type Roster struct {
	records

	seats map[wire.URI]broker.Seat
	last  int64
}

var _ broker.Roster = (*Roster)(nil)

// NewRoster is empty.
func NewRoster() *Roster { return &Roster{seats: map[wire.URI]broker.Seat{}} }

// TakeSeats implements broker.Roster.
func (r *Roster) TakeSeats(_ context.Context, server string, who []broker.Presence) (numbers []int64, err error) {
	err = r.write(func() {
		for _, p := range who {
			r.last++
			p.Rivals, numbers = broker.Rivals{}, append(numbers, r.last)
			r.seats[p.URI] = broker.Seat{Presence: p, Server: server, Number: r.last}
		}
	})
	return numbers, err
}

// LeaveSeats implements broker.Roster.
func (r *Roster) LeaveSeats(_ context.Context, places []broker.Place) error {
	return r.write(func() {
		for _, p := range places {
			if r.seats[p.URI].Number == p.Number {
				delete(r.seats, p.URI)
			}
		}
	})
}

// ClearSeats implements broker.Roster.
func (r *Roster) ClearSeats(_ context.Context, server string) (cleared int, err error) {
	err = r.write(func() {
		before := len(r.seats)
		maps.DeleteFunc(r.seats, func(_ wire.URI, s broker.Seat) bool { return s.Server == server })
		cleared = before - len(r.seats)
	})
	return cleared, err
}

// Tallies implements broker.Roster.
func (r *Roster) Tallies(context.Context) (all map[string]broker.Tally, newest int64, err error) {
	all = map[string]broker.Tally{}
	err = r.read(func() {
		for _, s := range r.seats {
			all[s.Server] = broker.Tally{Count: all[s.Server].Count + 1, Sum: all[s.Server].Sum + s.Number}
		}
		newest = r.last
	})
	return all, newest, err
}

// Seat implements broker.Roster.
func (r *Roster) Seat(_ context.Context, uri wire.URI) (seat broker.Seat, ok bool, err error) {
	err = r.read(func() { seat, ok = r.seats[uri] })
	return seat, ok, err
}

// Seats implements broker.Roster.
func (r *Roster) Seats(_ context.Context, server string) (all []broker.Seat, err error) {
	err = r.read(func() {
		for _, s := range r.seats {
			if s.Server == server {
				all = append(all, s)
			}
		}
	})
	slices.SortFunc(all, func(a, b broker.Seat) int { return strings.Compare(string(a.URI), string(b.URI)) })
	return all, err
}

// RunRoster is the suite of broker.Roster.
func RunRoster(t *testing.T, open func(*testing.T) broker.Roster) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, broker.Roster){
		"who came later has the place":    laterHasThePlace,
		"leaving ends only one's own":     leavingEndsOnes,
		"a server's seats can be cleared": clears,
		"numbers become seen in order":    numbersInOrder,
		"what is kept of a seat":          keepsAll,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// guest is a client.
func guest(name string) broker.Presence {
	return broker.Presence{
		URI: wire.NewURI(name, "agent"), Certname: fleet.Certname(name), Party: broker.Node, Version: wire.V2, Since: time.Unix(1_700_000_000, 0).UTC(),
	}
}

func takeSeats(t *testing.T, r broker.Roster, server string, names ...string) []int64 {
	t.Helper()
	who := make([]broker.Presence, len(names))
	for i, name := range names {
		who[i] = guest(name)
	}
	numbers, err := r.TakeSeats(t.Context(), server, who)
	if err != nil {
		t.Fatal(err)
	}
	return numbers
}

func leaveSeats(t *testing.T, r broker.Roster, places ...broker.Place) {
	t.Helper()
	if err := r.LeaveSeats(t.Context(), places); err != nil {
		t.Fatal(err)
	}
}

func place(name string, number int64) broker.Place {
	return broker.Place{URI: wire.NewURI(name, "agent"), Number: number}
}

// wantSeats compares who is on a server, as NAME NUMBER, and the tally of it.
func wantSeats(t *testing.T, r broker.Roster, server string, want ...string) {
	t.Helper()
	seats, err := r.Seats(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var sum broker.Tally
	for _, s := range seats {
		got = append(got, fmt.Sprint(s.Certname, " ", s.Number))
		sum = broker.Tally{Count: sum.Count + 1, Sum: sum.Sum + s.Number}
		if s.Server != server {
			t.Errorf("a seat of %s is among those of %s", s.Server, server)
		}
		one, there, err := r.Seat(t.Context(), s.URI)
		if diff := cmp.Diff(s, one); diff != "" || !there || err != nil {
			t.Errorf("the seat of %s: %t, %v (-all +one):\n%s", s.URI, there, err, diff)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("on %s are %q, want %q", server, got, want)
	}
	all, newest, err := r.Tallies(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tally, there := all[server]; tally != sum || there != (sum.Count > 0) {
		t.Errorf("%s: the tally is %+v, %t, and the seats make %+v", server, tally, there, sum)
	}
	for _, s := range seats {
		if s.Number > newest {
			t.Errorf("%d is above the newest, %d", s.Number, newest)
		}
	}
}

func laterHasThePlace(t *testing.T, r broker.Roster) {
	t.Helper()
	if seat, there, err := r.Seat(t.Context(), "pcp://web-1/agent"); there || err != nil {
		t.Errorf("who was never there has %+v, %v", seat, err)
	}
	wantSeats(t, r, "a")
	if got := takeSeats(t, r, "a", "web-2", "web-1"); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("the first numbers are %d", got)
	}
	takeSeats(t, r, "b", "db-1", "web-1")
	wantSeats(t, r, "a", "web-2 1")
	wantSeats(t, r, "b", "db-1 3", "web-1 4")
	takeSeats(t, r, "a", "web-2", "web-1") // also one's own
	wantSeats(t, r, "a", "web-1 6", "web-2 5")
	wantSeats(t, r, "b", "db-1 3")
	if got := takeSeats(t, r, "a"); len(got) != 0 {
		t.Errorf("nobody got %d", got)
	}
}

func leavingEndsOnes(t *testing.T, r broker.Roster) {
	t.Helper()
	takeSeats(t, r, "a", "web-1", "web-2", "web-3")
	takeSeats(t, r, "b", "web-1")
	leaveSeats(t, r, place("web-2", 2), place("web-1", 1), place("web-3", 9), place("unknown", 1))
	wantSeats(t, r, "a", "web-3 3")
	wantSeats(t, r, "b", "web-1 4")
	leaveSeats(t, r)
	leaveSeats(t, r, place("web-1", 4), place("web-1", 4))
	wantSeats(t, r, "b")
	if got := takeSeats(t, r, "a", "web-1"); got[0] != 5 {
		t.Errorf("a number was given twice: %d", got)
	}
}

func clears(t *testing.T, r broker.Roster) {
	t.Helper()
	takeSeats(t, r, "a", "web-1", "web-2")
	takeSeats(t, r, "b", "web-2")
	for _, want := range []int{1, 0} {
		if n, err := r.ClearSeats(t.Context(), "a"); n != want || err != nil {
			t.Errorf("cleared %d, %v, want %d", n, err, want)
		}
	}
	wantSeats(t, r, "a")
	wantSeats(t, r, "b", "web-2 3")
}

// Whoever sees a number sees all lower ones, or what became of them: several servers take and leave at once.
func numbersInOrder(t *testing.T, r broker.Roster) {
	t.Helper()
	var all sync.WaitGroup
	for server := range 3 {
		all.Go(func() {
			for i := range 20 {
				var who []broker.Presence
				for j := range 5 {
					who = append(who, guest(fmt.Sprint("web-", (i*7+j*3+server)%20)))
				}
				numbers, err := r.TakeSeats(t.Context(), fmt.Sprint(server), who)
				if err != nil || len(numbers) != len(who) || !slices.IsSorted(numbers) {
					t.Errorf("%d, %v", numbers, err)
					return
				}
				if err := r.LeaveSeats(t.Context(), []broker.Place{{URI: who[1].URI, Number: numbers[1]}, {URI: who[0].URI, Number: numbers[0]}}); err != nil {
					t.Error(err)
				}
				if seats, err := r.Seats(t.Context(), fmt.Sprint(server)); err != nil || slices.ContainsFunc(seats, func(s broker.Seat) bool {
					return s.Number == numbers[0] || s.Number == numbers[1]
				}) {
					t.Errorf("who left is there: %v, %v", seats, err)
				}
				if _, newest, err := r.Tallies(t.Context()); err != nil || newest < numbers[len(numbers)-1] {
					t.Errorf("the newest is %d, and %d was given: %v", newest, numbers, err)
				}
			}
		})
	}
	all.Wait()
	seen := map[wire.URI]bool{}
	for server := range 3 {
		seats, err := r.Seats(t.Context(), fmt.Sprint(server))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range seats {
			if seen[s.URI] {
				t.Errorf("%s has two seats", s.URI)
			}
			seen[s.URI] = true
		}
	}
}

func keepsAll(t *testing.T, r broker.Roster) {
	t.Helper()
	who := broker.Presence{
		URI: "pcp://ctl-1/orders", Certname: "ctl-1", Party: broker.Controller, Version: wire.V1, Agent: "other/1.0", Remote: "192.0.2.1:5",
		Since: time.Unix(1_700_000_000, 5000).UTC(), Superseded: time.Unix(1_700_000_001, 0).UTC(),
	}
	if _, err := r.TakeSeats(t.Context(), "a", []broker.Presence{who}); err != nil {
		t.Fatal(err)
	}
	seats, err := r.Seats(t.Context(), "a")
	if err != nil || len(seats) != 1 {
		t.Fatalf("%v, %v", seats, err)
	}
	seats[0].Since, seats[0].Superseded = seats[0].Since.UTC(), seats[0].Superseded.UTC()
	if diff := cmp.Diff(broker.Seat{Presence: who, Server: "a", Number: 1}, seats[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
