package castest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunMarks holds the marks that open returns to the port's contract. open is called once a test; it returns marks of no store.
func RunMarks(t *testing.T, open func(t *testing.T) cas.Marks) {
	t.Helper()
	tests := map[string]func(*testing.T, cas.Marks){
		"a store is paired":            marksPaired,
		"what is announced arrives":    marksArrive,
		"what is stored is renewed":    marksRenewed,
		"what is old leaves":           marksLeave,
		"what is leaving is not there": marksLeaving,
		"who gave up dies":             marksAbandoned,
		"who gave up is late":          marksLate,
		"what is removed is put again": marksLost,
		"an adopted blob":              marksAdopted,
		"another store":                marksUnpaired,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := open(t)
			if err := m.Pair(t.Context(), "store"); err != nil {
				t.Fatal(err)
			}
			test(t, m)
		})
	}
}

var markA, markB = fleet.DigestOf([]byte("a")), fleet.DigestOf([]byte("b"))

func marksPaired(t *testing.T, m cas.Marks) {
	if name, err := m.Paired(t.Context()); err != nil || name != "store" {
		t.Errorf("paired with %q, %v", name, err)
	}
	if err := m.Pair(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if name, err := m.Paired(t.Context()); err != nil || name != "other" {
		t.Errorf("paired with %q, %v", name, err)
	}
}

func marksArrive(t *testing.T, m cas.Marks) {
	wantMarks(t, m, false, cas.Absent, cas.Absent)
	wantMarks(t, m, true, cas.Absent, cas.Absent)
	wantMarks(t, m, true, cas.Absent, cas.Absent) // announced is not stored
	arrive(t, m, markB)
	wantMarks(t, m, false, cas.Absent, cas.Stored)
}

func marksRenewed(t *testing.T, m cas.Marks) {
	store(t, m, markA, markB)
	between := clock(t, m)
	if _, err := m.Renew(t.Context(), []fleet.Digest{markA}, false); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, m, between, markB)
}

func marksLeave(t *testing.T, m cas.Marks) {
	early := clock(t, m)
	store(t, m, markA)
	if left := leave(t, m, early, time.Hour, false); len(left.Digests) > 0 {
		t.Errorf("left: %v, want none", left.Digests)
	}
	wantLeft(t, m, early, markB) // nobody knows it
	wantLeft(t, m, clock(t, m).Add(time.Hour), markA)
	wantLeft(t, m, clock(t, m).Add(time.Hour)) // they left already
}

func marksLeaving(t *testing.T, m cas.Marks) {
	store(t, m, markA)
	left := wantLeft(t, m, clock(t, m).Add(time.Hour), markA, markB)
	for _, announce := range []bool{true, false} {
		wantMarks(t, m, announce, cas.Leaving, cas.Leaving)
	}
	gone(t, m, left)
	wantMarks(t, m, false, cas.Absent, cas.Absent)
}

func marksAbandoned(t *testing.T, m cas.Marks) {
	store(t, m, markA)
	left := leave(t, m, clock(t, m).Add(time.Hour), 0, false)
	wantMarks(t, m, true, cas.Absent, cas.Absent) // it may be there or not: it is put again
	arrive(t, m, markA)
	wantMarks(t, m, false, cas.Stored, cas.Absent)
	gone(t, m, left) // who comes back late
	wantMarks(t, m, false, cas.Stored, cas.Absent)
}

// marksLate has somebody say that content is gone when somebody else is removing it: who would put it now would lose it.
func marksLate(t *testing.T, m cas.Marks) {
	store(t, m, markA, markB)
	late := leave(t, m, clock(t, m).Add(time.Hour), 0, false)
	left := wantLeft(t, m, clock(t, m).Add(time.Hour), markA, markB)
	gone(t, m, late)
	wantMarks(t, m, true, cas.Leaving, cas.Leaving)
	gone(t, m, left)
	wantMarks(t, m, true, cas.Absent, cas.Absent)
}

func marksLost(t *testing.T, m cas.Marks) {
	wantMarks(t, m, true, cas.Absent, cas.Absent)
	left := wantLeft(t, m, clock(t, m).Add(time.Hour), markA, markB)
	wantLost(t, m, markA)
	gone(t, m, left)
	wantLost(t, m, markA)
	wantMarks(t, m, true, cas.Absent, cas.Absent)
	arrive(t, m, markA)
}

func marksAdopted(t *testing.T, m cas.Marks) {
	early := clock(t, m)
	if err := m.Adopt(t.Context(), []cas.Arrival{{Digest: markA, Bytes: 1}, {Digest: markA, Bytes: 1}}); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, m, early, markB)
	if err := m.Adopt(t.Context(), []cas.Arrival{{Digest: markB, Bytes: 1}}); err != nil {
		t.Fatal(err)
	}
	wantMarks(t, m, false, cas.Stored, cas.Leaving)
}

func marksUnpaired(t *testing.T, m cas.Marks) {
	store(t, m, markB)
	left := leave(t, m, clock(t, m).Add(time.Hour), time.Hour, false)
	store(t, m, markA)
	if err := m.Unpair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name, err := m.Paired(t.Context()); err != nil || name != "" {
		t.Errorf("paired with %q, %v", name, err)
	}
	wantMarks(t, m, false, cas.Absent, cas.Leaving)
	_, err := m.Leave(t.Context(), []fleet.Digest{markA}, clock(t, m), time.Hour, true)
	wantKind(t, err, fault.Conflict)

	gone(t, m, left) // after somebody else listed the store, and before it is adopted
	if err := m.Adopt(t.Context(), []cas.Arrival{{Digest: markA, Bytes: 1}, {Digest: markB, Bytes: 1}}); err != nil {
		t.Fatal(err)
	}
	wantMarks(t, m, false, cas.Stored, cas.Leaving)
}

func clock(t *testing.T, m cas.Marks) time.Time {
	t.Helper()
	now, err := m.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// store has content announced and stored.
func store(t *testing.T, m cas.Marks, ds ...fleet.Digest) {
	t.Helper()
	if _, err := m.Renew(t.Context(), ds, true); err != nil {
		t.Fatal(err)
	}
	arrive(t, m, ds...)
}

func arrive(t *testing.T, m cas.Marks, ds ...fleet.Digest) {
	t.Helper()
	arrived := make([]cas.Arrival, 0, len(ds))
	for _, d := range ds {
		arrived = append(arrived, cas.Arrival{Digest: d, Bytes: 1})
	}
	if lost, err := m.Arrive(t.Context(), arrived); err != nil || len(lost) > 0 {
		t.Fatalf("lost %v, %v", lost, err)
	}
}

func wantLost(t *testing.T, m cas.Marks, d fleet.Digest) {
	t.Helper()
	lost, err := m.Arrive(t.Context(), []cas.Arrival{{Digest: d, Bytes: 1}})
	if err != nil || !slices.Equal(lost, []fleet.Digest{d}) {
		t.Errorf("lost %v, %v, want %s", lost, err, d.Short())
	}
}

// wantMarks asks for a and b.
func wantMarks(t *testing.T, m cas.Marks, announce bool, want ...cas.Mark) {
	t.Helper()
	got, err := m.Renew(t.Context(), []fleet.Digest{markA, markB}, announce)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// wantLeft gives up what of a and b is older.
func wantLeft(t *testing.T, m cas.Marks, before time.Time, want ...fleet.Digest) cas.Departure {
	t.Helper()
	left := leave(t, m, before, time.Hour, true)
	slices.Sort(left.Digests)
	slices.Sort(want)
	if !slices.Equal(left.Digests, want) {
		t.Errorf("left: %v, want %v", left.Digests, want)
	}
	return left
}

func leave(t *testing.T, m cas.Marks, before time.Time, within time.Duration, strangers bool) cas.Departure {
	t.Helper()
	left, err := m.Leave(t.Context(), []fleet.Digest{markA, markB}, before, within, strangers)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func gone(t *testing.T, m cas.Marks, left cas.Departure) {
	t.Helper()
	if err := m.Gone(t.Context(), left); err != nil {
		t.Fatal(err)
	}
}
