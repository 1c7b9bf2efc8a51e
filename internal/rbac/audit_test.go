package rbac_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

// brokenLog is an audit log that fails from an act on.
type brokenLog struct {
	rbac.AuditStore
	record, finish error
}

func (b brokenLog) RecordAct(ctx context.Context, e rbac.Entry) (int64, error) {
	if b.record != nil {
		return 0, b.record
	}
	return b.AuditStore.RecordAct(ctx, e)
}

func (b brokenLog) FinishAct(ctx context.Context, id int64, o rbac.Outcome, detail string, at time.Time) error {
	if b.finish != nil {
		return b.finish
	}
	return b.AuditStore.FinishAct(ctx, id, o, detail, at)
}

func TestAnActWhoseEndIsNotSeenIsStarted(t *testing.T) {
	t.Parallel()
	store := rbactest.New()
	var log bytes.Buffer
	audit := rbac.NewAudit(brokenLog{AuditStore: store, finish: errors.New("disk full")}, slog.New(slog.NewTextHandler(&log, nil)))
	finish, err := audit.Begin(t.Context(), rbac.Entry{Operation: "node.purge"})
	check(t, err)
	finish(nil)
	entries, err := store.Acts(t.Context(), rbac.EntryFilter{Limit: 1})
	check(t, err)
	if entries[0].Outcome != rbac.Started || !strings.Contains(log.String(), "outcome not recorded") {
		t.Errorf("%+v, log %s", entries, &log)
	}
}

func TestTheKindOfAFullLogIsKept(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]fault.Kind{fault.Later(time.Second, "busy"): fault.Unavailable, errors.New("x"): fault.Internal} {
		audit := rbac.NewAudit(brokenLog{AuditStore: rbactest.New(), record: cause}, quiet)
		_, err := audit.Begin(t.Context(), rbac.Entry{})
		wantKind(t, "begin", err, want)
		if fault.RetryAfter(err) != fault.RetryAfter(cause) || !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%v became %v, back in %s", cause, err, fault.RetryAfter(err))
		}
	}
}

func TestStrangersDoNotFillTheAuditLog(t *testing.T) {
	t.Parallel()
	store := rbactest.New()
	audit := rbac.NewAudit(store, quiet)
	minute := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	refuse := func(at time.Time, kind fleet.ActorKind, times int) {
		for range times {
			audit.Refused(t.Context(), rbac.Entry{At: at, ActorKind: kind, Operation: "x\n" + strings.Repeat("ä", 500)}, fault.New(fault.Denied, "no"))
		}
	}
	refuse(minute, fleet.Anonymous, 150)
	refuse(minute, fleet.UserActor, 10)
	refuse(minute.Add(time.Minute), fleet.Anonymous, 1)
	entries, err := store.Acts(t.Context(), rbac.EntryFilter{Limit: 1000})
	check(t, err)
	if len(entries) != 111 || entries[0].Detail != "no (before this one, 50 more refusals had no place in the log)" {
		t.Errorf("%d entries, the newest says %q", len(entries), entries[0].Detail)
	}
	if op := entries[0].Operation; strings.Contains(op, "\n") || len(op) > 210 {
		t.Errorf("operation %q", op)
	}
}
