// Package orderstest holds the suites that every orders.Spool, orders.Runner and orders.Cache passes.
package orderstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Disk is a spool under test.
type Disk struct {
	Spool orders.Spool
	// Restart returns the spool as the next process finds it.
	Restart func() orders.Spool
	// Spoil makes a record unreadable.
	Spoil func(transaction string)
}

// RunSpool holds the spools that open returns to the port's contract. open is called
// once a test, and cleans up after itself.
func RunSpool(t *testing.T, open func(t *testing.T) Disk) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Disk){
		"a transaction is kept":        keeps,
		"a transaction begins once":    beginsOnce,
		"many begin one transaction":   beginsOnceConcurrently,
		"a record is replaced":         replaces,
		"unknown transactions":         unknown,
		"records that cannot be read":  unreadable,
		"order of the list":            listed,
		"output":                       outputs,
		"remove":                       removes,
		"purge":                        purges,
		"names that are no file names": hostileNames,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func record(transaction string, start int) orders.Record {
	return orders.Record{
		Transaction: transaction, Requester: "pcp:///server", Caller: "tutti=ana", Aborted: true, RequestID: "1-1-1-1-1", Module: "command",
		Action: "run", Notify: true, Start: time.Date(2026, 11, 21, 12, 0, start, 123456000, time.UTC), Status: orders.Running,
	}
}

func begin(t *testing.T, s orders.Spool, r orders.Record) {
	t.Helper()
	place, err := s.Begin(r)
	if err != nil {
		t.Fatal(err)
	}
	if place != s.Place(r.Transaction) {
		t.Errorf("begun at %s, the place is %s", place, s.Place(r.Transaction))
	}
}

func isRecord(t *testing.T, s orders.Spool, want orders.Record) {
	t.Helper()
	got, err := s.Load(want.Transaction)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the record (-want +got):\n%s", diff)
	}
}

func isKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("got %v, want an error of kind %s", err, want)
	}
}

func keeps(t *testing.T, d Disk) {
	r := record("t1", 0)
	r.Blocking, r.Stop = true, "lunch"
	begin(t, d.Spool, r)
	isRecord(t, d.Spool, r)
	isRecord(t, d.Restart(), r)
}

func beginsOnce(t *testing.T, d Disk) {
	r := record("t1", 0)
	begin(t, d.Spool, r)
	other := record("t1", 5)
	_, err := d.Spool.Begin(other)
	isKind(t, err, fault.Conflict)
	next := d.Restart()
	_, err = next.Begin(other)
	isKind(t, err, fault.Conflict)
	isRecord(t, next, r)
}

func beginsOnceConcurrently(t *testing.T, d Disk) {
	results := make(chan error)
	for i := range 8 {
		go func() {
			_, err := d.Spool.Begin(record("t1", i))
			results <- err
		}()
	}
	begun := 0
	for range 8 {
		if err := <-results; err == nil {
			begun++
		} else {
			isKind(t, err, fault.Conflict)
		}
	}
	if begun != 1 {
		t.Errorf("the transaction was begun %d times", begun)
	}
}

func replaces(t *testing.T, d Disk) {
	r := record("t1", 0)
	begin(t, d.Spool, r)
	r.Status, r.Error, r.End, r.Delivered = orders.Failure, "no\nluck", r.Start.Add(time.Minute), true
	if err := d.Spool.Save(r); err != nil {
		t.Fatal(err)
	}
	isRecord(t, d.Restart(), r)
}

func unknown(t *testing.T, d Disk) {
	for _, id := range []string{"nobody", "..", "", "a/b"} {
		_, err := d.Spool.Load(id)
		isKind(t, err, fault.NotFound)
		_, err = d.Spool.Output(id)
		isKind(t, err, fault.NotFound)
		isKind(t, d.Spool.Write(id, orders.Output{}), fault.NotFound)
		isKind(t, d.Spool.Save(orders.Record{Transaction: id}), fault.NotFound)
		if err := d.Spool.Remove(id); err != nil {
			t.Errorf("remove %q: %v", id, err)
		}
	}
}

func unreadable(t *testing.T, d Disk) {
	begin(t, d.Spool, record("t1", 0))
	d.Spoil("t1")
	next := d.Restart()
	_, err := next.Load("t1")
	isKind(t, err, fault.Invalid)
	_, err = next.Begin(record("t1", 0))
	isKind(t, err, fault.Conflict)
	list, err := next.List()
	if err != nil || len(list) != 0 {
		t.Errorf("listed %v, %v", list, err)
	}
	gone, err := next.Purge(time.Now().Add(time.Hour), func(string) bool { return false })
	if err != nil || gone != 1 {
		t.Errorf("purged %d, %v: what cannot be read is not kept for ever", gone, err)
	}
}

func listed(t *testing.T, d Disk) {
	list, err := d.Spool.List()
	if err != nil || len(list) != 0 {
		t.Errorf("a new spool lists %v, %v", list, err)
	}
	want := []orders.Record{record("b", 1), record("c", 1), record("a", 2)}
	for _, i := range []int{2, 0, 1} {
		begin(t, d.Spool, want[i])
	}
	list, err = d.Restart().List()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
}

func outputs(t *testing.T, d Disk) {
	begin(t, d.Spool, record("t1", 0))
	got, err := d.Spool.Output("t1")
	if diff := cmp.Diff(orders.Output{}, got); err != nil || diff != "" {
		t.Errorf("before anything happened: %v (-want +got):\n%s", err, diff)
	}
	exit := 3
	want := orders.Output{Begun: true, Exit: &exit, Ended: pxp.EndedByTime, Stdout: []byte("a\x00\xff\n"), Stderr: []byte("b")}
	if err := d.Spool.Write("t1", want); err != nil {
		t.Fatal(err)
	}
	over := record("t1", 0)
	over.Status = orders.Failure
	if err := d.Spool.Save(over); err != nil {
		t.Fatal(err)
	}
	got, err = d.Restart().Output("t1")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the output: %v (-want +got):\n%s", err, diff)
	}
}

func removes(t *testing.T, d Disk) {
	begin(t, d.Spool, record("t1", 0))
	if err := d.Spool.Remove("t1"); err != nil {
		t.Fatal(err)
	}
	_, err := d.Spool.Load("t1")
	isKind(t, err, fault.NotFound)
	begin(t, d.Restart(), record("t1", 0))
}

func purges(t *testing.T, d Disk) {
	for i, status := range []orders.Status{orders.Success, orders.Running, orders.Failure, orders.Success} {
		r := record(fmt.Sprint("t", i), i*10)
		r.Status = status
		begin(t, d.Spool, r)
	}
	gone, err := d.Spool.Purge(record("", 25).Start, func(id string) bool { return id == "t2" })
	if err != nil || gone != 1 {
		t.Errorf("purged %d, %v: only t0 is old, over, and not kept", gone, err)
	}
	_, err = d.Spool.Load("t0")
	isKind(t, err, fault.NotFound)
	for _, id := range []string{"t1", "t2", "t3"} {
		if _, err := d.Spool.Load(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func hostileNames(t *testing.T, d Disk) {
	for _, id := range []string{"", "..", "a/b", `a\b`, "a:b", "\x00"} {
		_, err := d.Spool.Begin(orders.Record{Transaction: id, Start: time.Now(), Status: orders.Running})
		isKind(t, err, fault.Invalid)
	}
}
