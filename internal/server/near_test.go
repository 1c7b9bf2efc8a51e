package server

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/store/lease"
	"github.com/tutti-project/tutti/internal/store/local"
)

// unsealed seals nothing.
type unsealed struct{}

func (unsealed) Seal(b []byte) ([]byte, error) { return b, nil }
func (unsealed) Open(b []byte) ([]byte, error) { return b, nil }

// What the records are told of a server near its nodes does not wait in a call of before the cut, and is put right when the way is back.
func TestTheWordOfAServerNearItsNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk, err := local.Open(filepath.Join(t.TempDir(), "near.db"), local.Config{MostBytes: 1 << 20, Seal: unsealed{}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := disk.Close(); err != nil {
				t.Error(err)
			}
		}()
		log, away := slog.New(slog.DiscardHandler), atomic.Bool{}
		silent := func(ctx context.Context) error {
			if away.Load() {
				<-ctx.Done()
				return errors.New("no answer")
			}
			return nil
		}
		n := &nearby{disk: disk, link: near.NewLink(&near.Link{Ask: silent, Log: log}), courier: &near.Courier{}, witness: &near.Witness{}}
		if n.keeper, err = near.NewKeeper(&near.Keeper{Link: n.link, Shelf: disk, Now: time.Now, Log: log}); err != nil {
			t.Fatal(err)
		}
		var told lease.Near
		var at time.Time
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- n.link.Run(ctx) }()
		go func() {
			ended <- n.say(ctx, func(ctx context.Context, now lease.Near) error {
				if err := silent(ctx); err != nil {
					return err
				}
				told, at = now, time.Now()
				return nil
			})
		}()
		<-time.After(10500 * time.Millisecond)
		if err := disk.Add(near.Piece{Kind: near.Facts, Node: "a.test"}); err != nil { // of an earlier cut: there is something to say
			t.Fatal(err)
		}
		away.Store(true)
		<-time.After(time.Minute)
		synctest.Wait()
		if from, until := n.link.Last(); from.IsZero() || !until.IsZero() || told.Queued != 0 {
			t.Fatalf("it is cut from %v until %v, and said %+v", from, until, told)
		}
		away.Store(false)
		<-time.After(10 * time.Second)
		synctest.Wait()
		if _, until := n.link.Last(); until.IsZero() || told.BackAt != until || at != until || told.Queued != 1 {
			t.Errorf("the way is back since %v; the records were told at %v: %+v", until, at, told)
		}
		stop()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
}
