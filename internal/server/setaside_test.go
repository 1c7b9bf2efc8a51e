package server

import (
	"bytes"
	"encoding/gob"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/store/local"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// What a server's database refuses is set aside on its disk; when the reason is gone, having it tried again stores it.
func TestWhatTheDatabaseRefusesIsSettled(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	c.Data = filepath.Join(t.TempDir(), "data")
	start := func() *parts {
		p, err := open(t.Context(), c, newLogger(c, io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := start()
	key, err := p.data.Seal()
	if err != nil {
		t.Fatal(err)
	}
	if key, err = key.Of(nearSeal); err != nil {
		t.Fatal(err)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}

	const run = "0b8a7d36-5c3f-4a58-9a0e-1f6f0e7a1c11"
	first, later := eventtest.Begin(1), eventtest.Resource(2, event.Success, "File", "/etc/motd")
	var body bytes.Buffer // as it was queued in an earlier life of this server
	if err := gob.NewEncoder(&body).Encode(event.Batch{Node: "web-1", Run: run, Events: []pxp.RunEvent{later}}); err != nil {
		t.Fatal(err)
	}
	disk, err := local.Open(filepath.Join(c.Data, nearFile), local.Config{MostBytes: 1 << 20, Seal: key})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(disk.Add(near.Piece{Kind: near.Events, Node: "web-1", At: time.Now(), Body: body.Bytes()}), disk.Close()); err != nil {
		t.Fatal(err)
	}

	p = start()
	defer func() { _ = p.close() }()
	aside := func() []near.Refused {
		t.Helper()
		if err := p.leftover.courier.Deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := p.leftover.setAside().Refused(0, 10)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	refused := aside()
	if len(refused) != 1 || !strings.Contains(refused[0].Why, "that came before number 2 are missing") {
		t.Fatalf("set aside: %+v", refused)
	}
	numbers := []uint64{refused[0].Number}
	if n, err := p.leftover.setAside().Again(numbers); n != 1 || err != nil || len(aside()) != 1 {
		t.Errorf("the reason stands, and it is set aside no more: %d, %v", n, err)
	}
	if _, err := p.store.Events.TakeEvents(t.Context(), []event.Batch{{Node: "web-1", Run: run, Events: []pxp.RunEvent{first}}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if n, err := p.leftover.setAside().Again(numbers); n != 1 || err != nil || len(aside()) != 0 {
		t.Errorf("the reason is gone, and it is still set aside: %d, %v", n, err)
	}
	taken, err := p.store.Events.TakeEvents(t.Context(), []event.Batch{{Node: "web-1", Run: run, Events: []pxp.RunEvent{later}}}, time.Now())
	if err != nil || len(taken) != 1 || taken[0].Last != 2 || taken[0].New != 0 {
		t.Errorf("the database does not have it: %+v, %v", taken, err)
	}
}
