package lease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/lease/leasetest"
)

// A server that yields is followed as soon as the others look, and does nothing more, also when they are gone.
func TestWhoYieldsIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, shifts := leasetest.New(), make(chan shift, 10)
		a := begin(t, store, "a", working(shifts, "a"))
		want(t, shifts, "a", true)
		b := begin(t, store, "b", working(shifts, "b"))
		<-time.After(time.Minute)
		yielded := time.Now()
		a.Yield()
		a.Yield()
		ended, began := want(t, shifts, "a", false), want(t, shifts, "b", true)
		if !ended.Equal(yielded) || began.Sub(yielded) > lease.Shared().Poll {
			t.Errorf("a ended after %s, b began after %s", ended.Sub(yielded), began.Sub(yielded))
		}
		b.end(t)
		want(t, shifts, "b", false)
		<-time.After(time.Hour)
		if len(shifts) > 0 {
			t.Errorf("who yielded began again: %+v", <-shifts)
		}
		a.end(t)
	})
}

// Clocks of servers may be wrong, and jump: the clock of the records does not.
func TestTheClockIsThatOfTheRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c lease.Clock
		if !c.Now().Equal(time.Now()) {
			t.Errorf("before it is set: %s", c.Now())
		}
		behind := time.Now().Add(-time.Hour) // the records'
		asked := time.Now()
		<-time.After(2 * time.Second) // the answer came late
		c.Set(behind, asked)
		<-time.After(time.Minute)
		if want := behind.Add(time.Minute + time.Second); !c.Now().Equal(want) {
			t.Errorf("%s, want %s", c.Now(), want)
		}
	})
}
