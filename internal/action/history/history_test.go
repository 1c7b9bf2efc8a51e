package history_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/action/history"
	"github.com/tutti-project/tutti/internal/action/history/historytest"
)

func TestRecordsAreBoundedAndOutliveWhoAsked(t *testing.T) {
	t.Parallel()
	store := historytest.NewStore()
	gone, leave := context.WithCancel(t.Context())
	leave()
	long := "x" + strings.Repeat("é", history.MaxText)
	history.Keeper{Store: store, Log: slog.New(slog.DiscardHandler)}.Keep(gone, history.Call{Module: "m", Action: "a", Input: long, Targets: long, Left: true})
	calls, err := store.Calls(t.Context(), history.Page{Limit: 9})
	if err != nil || len(calls) != 1 || !calls[0].Left {
		t.Fatalf("%+v, %v", calls, err)
	}
	for _, text := range []string{calls[0].Input, calls[0].Targets} {
		if len(text) > history.MaxText || len(text) < history.MaxText-4 || !utf8.ValidString(text) || !strings.HasSuffix(text, "é…") {
			t.Errorf("%d bytes: %q", len(text), text)
		}
	}
}

// down is a store that does not answer.
type down struct{ history.Store }

func (down) SaveCall(context.Context, history.Call) (int64, error) {
	return 0, errors.New("the disk is full")
}

func TestARecordThatIsNotWrittenIsSaid(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	history.Keeper{
		Store: down{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	}.Keep(t.Context(), history.Call{Module: "m", Action: "a", Actor: "ann", Input: "unsaid"})
	if text := log.String(); !strings.Contains(text, "disk is full") || !strings.Contains(text, "actor=ann") || strings.Contains(text, "unsaid") {
		t.Error(text)
	}
}
