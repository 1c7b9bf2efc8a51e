package brokertest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/broker"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Attendances is broker.AttendanceStore in memory.
type Attendances struct {
	records

	last map[fleet.Certname]broker.Attendance
}

var _ broker.AttendanceStore = (*Attendances)(nil)

// NewAttendances is empty.
func NewAttendances() *Attendances { return &Attendances{last: map[fleet.Certname]broker.Attendance{}} }

// Attendances implements broker.AttendanceStore.
func (a *Attendances) Attendances(context.Context) (all []broker.Attendance, err error) {
	err = a.read(func() { all = slices.Collect(maps.Values(a.last)) })
	return all, err
}

// SaveAttendances implements broker.AttendanceStore.
func (a *Attendances) SaveAttendances(_ context.Context, last []broker.Attendance) error {
	return a.write(func() {
		for _, l := range last {
			a.last[l.Node] = l
		}
	})
}

// RunAttendances is the suite of broker.AttendanceStore.
func RunAttendances(t *testing.T, open func(*testing.T) broker.AttendanceStore) {
	t.Helper()
	s := open(t)
	at := func(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0).UTC() }
	read := func() []broker.Attendance {
		t.Helper()
		all, err := s.Attendances(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			all[i].Since = all[i].Since.UTC()
			if !all[i].Until.IsZero() {
				all[i].Until = all[i].Until.UTC()
			}
		}
		slices.SortFunc(all, func(a, b broker.Attendance) int { return strings.Compare(string(a.Node), string(b.Node)) })
		return all
	}
	if all := read(); len(all) != 0 {
		t.Errorf("an empty store has %v", all)
	}
	save := func(last ...broker.Attendance) {
		t.Helper()
		if err := s.SaveAttendances(t.Context(), last); err != nil {
			t.Fatal(err)
		}
	}
	save(broker.Attendance{Node: "web-1", Agent: "tutti-agent/1", Since: at(1)}, broker.Attendance{Node: "db-1", Since: at(1), Until: at(2)})
	save(broker.Attendance{Node: "web-1", Agent: "tutti-agent/2", Since: at(3)}, broker.Attendance{Node: "new", Since: at(4), Until: at(5)})
	save()
	want := []broker.Attendance{
		{Node: "db-1", Since: at(1), Until: at(2)},
		{Node: "new", Since: at(4), Until: at(5)},
		{Node: "web-1", Agent: "tutti-agent/2", Since: at(3)},
	}
	if diff := cmp.Diff(want, read()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
