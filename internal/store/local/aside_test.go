package local_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/fault"
)

// What was set aside takes of the queue's room, survives, is listed with its reasons, comes back to its place, and can be deleted.
func TestWhatWasSetAside(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "q")
	s := open(t, path, 20_000)
	add := func() error {
		return s.Add(near.Piece{Kind: near.Report, Node: "a.test", At: time.Unix(7, 0), Body: noise(1000)})
	}
	for range 8 {
		if err := add(); err != nil {
			t.Fatal(err)
		}
	}
	all, err := s.Next(0, 8)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all[:6] {
		if err := errors.Join(s.SetAside(p.Number, "it is odd"), s.SetAside(p.Number, "it is gone already")); err != nil {
			t.Fatal(err)
		}
	}
	for err = nil; err == nil; {
		err = add()
	}
	if fault.Of(err) != fault.Unavailable || !strings.Contains(fault.Detail(err), "that the database refused: `tutti cluster set-aside list`") {
		t.Errorf("a full queue says %v", err)
	}
	before := s.Load()
	before.Oldest = before.Oldest.UTC()
	if before.Aside != 6 || before.AsideBytes < 6000 || before.Bytes+before.AsideBytes > 20_000 || before.Pieces > 12 {
		t.Errorf("with six set aside: %+v", before)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, 20_000)
	after := s.Load()
	if after.Oldest = after.Oldest.UTC(); after != before {
		t.Errorf("after a start: %+v, before: %+v", after, before)
	}

	refused, err := s.Refused(all[1].Number, 2)
	if err != nil || len(refused) != 2 || refused[0].Number != all[2].Number || refused[0].Why != "it is odd" || refused[0].Node != "a.test" ||
		string(refused[0].Body) != string(all[2].Body) || refused[0].Bytes < 1000 {
		t.Errorf("refused: %+v, %v", refused, err)
	}
	if n, err := s.Again([]uint64{all[2].Number, all[2].Number, 9999}); n != 1 || err != nil {
		t.Errorf("%d come back, %v", n, err)
	}
	if first, err := s.Next(0, 1); err != nil || len(first) != 1 || first[0].Number != all[2].Number || string(first[0].Body) != string(all[2].Body) {
		t.Errorf("first of the queue: %v, %v", first, err)
	}
	if n, err := s.Forget([]uint64{all[0].Number, all[1].Number, all[2].Number}); n != 2 || err != nil {
		t.Errorf("%d are deleted, %v", n, err)
	}
	load := s.Load()
	if load.Aside != 3 || load.Pieces != before.Pieces+1 || load.Bytes+load.AsideBytes > before.Bytes+before.AsideBytes-2000 {
		t.Errorf("with three set aside: %+v, before: %+v", load, before)
	}
	if err := add(); err != nil {
		t.Errorf("there is room again: %v", err)
	}
}
