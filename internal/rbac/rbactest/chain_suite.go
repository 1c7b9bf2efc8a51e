package rbactest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/rbac"
)

// Seal is a rbac.Seal whose signatures anybody can make.
type Seal struct{}

// SignAudit implements rbac.Seal.
func (Seal) SignAudit(text []byte) (signer string, signature []byte, err error) {
	sum := sha256.Sum256(append([]byte("key"), text...))
	return "ca", sum[:], nil
}

// CheckAudit implements rbac.Seal.
func (s Seal) CheckAudit(signer string, text, signature []byte) error {
	if _, want, _ := s.SignAudit(text); signer != "ca" || string(want) != string(signature) {
		return errors.New("it is not of this CA")
	}
	return nil
}

func runChainStore(t *testing.T, open func(t *testing.T) rbac.AuditStore) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, rbac.AuditStore){
		"lines are chained":                    linesChained,
		"lines are listed by page":             linePages,
		"a cut chain is whole":                 chainCut,
		"an entry stays while a line is of it": entryStays,
		"heads are kept once":                  headsKept,
		"writers at once leave no gap":         chainWriters,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func chainOf(s rbac.AuditStore) *rbac.Chain {
	return rbac.NewChain(s, Seal{}, slog.New(slog.DiscardHandler))
}

func verified(t *testing.T, s rbac.AuditStore) rbac.Checked {
	t.Helper()
	found, err := chainOf(s).Verify(t.Context(), rbac.ChainEnd{})
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return found
}

func linesOf(t *testing.T, s rbac.AuditStore, after int64, limit int) (list string) {
	t.Helper()
	page, err := s.ChainPage(t.Context(), after, limit)
	check(t, err)
	for _, l := range page.Lines {
		list += fmt.Sprintf("%d %s %d, ", l.Seq, l.Kind, l.Act)
	}
	for _, h := range page.Heads {
		list += fmt.Sprintf("head %d, ", h.Seq)
	}
	return strings.TrimSuffix(list, ", ")
}

func linesChained(t *testing.T, s rbac.AuditStore) {
	ctx := t.Context()
	same(t, "an empty chain", rbac.Checked{}, verified(t, s))
	fill(t, s)
	check(t, s.FinishAct(ctx, 4, rbac.Failed, "<it> \"broke\" & bürned\u2028", start.Add(time.Hour)))
	same(t, "lines", "1 opened 0, 2 whole 1, 3 whole 2, 4 whole 3, 5 started 4, 6 whole 5, 7 ended 4", linesOf(t, s, 0, 10))
	if _, err := chainOf(s).Sign(ctx, start); err != nil {
		t.Fatal(err)
	}
	found := verified(t, s)
	same(t, "found", rbac.Checked{First: 1, Last: 7, Lines: 7, Heads: 1, SignedThrough: 7, Digest: found.Digest}, found)
	_, end, err := s.LastHead(ctx)
	check(t, err)
	same(t, "end", rbac.ChainEnd{Seq: 7, Digest: found.Digest}, end)

	_, err = chainOf(s).Verify(ctx, end)
	check(t, err)
	for _, known := range []rbac.ChainEnd{{Seq: 7, Digest: hex.EncodeToString(make([]byte, 32))}, {Seq: 8, Digest: end.Digest}} {
		if _, err := chainOf(s).Verify(ctx, known); err == nil {
			t.Errorf("a chain without the known line %d is taken for whole", known.Seq)
		}
	}
	seq, err := s.LineBefore(ctx, start.Add(2*time.Minute))
	check(t, err)
	same(t, "line before", int64(3), seq)
}

func linePages(t *testing.T, s rbac.AuditStore) {
	ctx := t.Context()
	fill(t, s)
	for _, seq := range []int64{2, 4, 6, 9} {
		check(t, s.SaveHead(ctx, rbac.Head{Seq: seq, At: start}))
	}
	same(t, "the first page", "1 opened 0, 2 whole 1, head 2", linesOf(t, s, 0, 2))
	same(t, "the second page", "3 whole 2, 4 whole 3, head 4", linesOf(t, s, 2, 2))
	same(t, "the third page", "5 started 4, 6 whole 5, head 6", linesOf(t, s, 4, 2))
	same(t, "behind the end", "head 9", linesOf(t, s, 6, 2))
}

func chainCut(t *testing.T, s rbac.AuditStore) {
	ctx := t.Context()
	fill(t, s)
	if _, err := chainOf(s).Sign(ctx, start); err != nil {
		t.Fatal(err)
	}
	n, err := s.PruneActs(ctx, start, start.Add(time.Hour))
	check(t, err)
	same(t, "pruned of nothing", 0, n)
	n, err = s.PruneActs(ctx, start.Add(2*time.Minute), start.Add(time.Hour))
	check(t, err)
	same(t, "pruned", 2, n)
	same(t, "lines", "4 whole 3, 5 started 4, 6 whole 5, 7 pruned 0, head 6", linesOf(t, s, 0, 10))
	same(t, "lines found", 4, verified(t, s).Lines)
	n, err = s.PruneActs(ctx, start.Add(2*time.Hour), start.Add(3*time.Hour))
	check(t, err)
	same(t, "pruned all", 3, n)
	same(t, "lines", "8 pruned 0", linesOf(t, s, 0, 10))
	verified(t, s)
	_, err = s.RecordAct(ctx, rbac.Entry{At: start.Add(4 * time.Hour), Outcome: rbac.Started})
	check(t, err)
	same(t, "lines found", 2, verified(t, s).Lines)
	if _, err := chainOf(s).Verify(ctx, rbac.ChainEnd{Seq: 3}); fault.Of(err) != fault.Invalid {
		t.Errorf("a known line that was forgotten: %v, want Invalid", err)
	}
}

// An act that takes long is recorded before the cut and ends after it.
func entryStays(t *testing.T, s rbac.AuditStore) {
	ctx := t.Context()
	id, err := s.RecordAct(ctx, rbac.Entry{At: start, Operation: "long", Outcome: rbac.Started})
	check(t, err)
	check(t, s.FinishAct(ctx, id, rbac.Done, "", start.Add(time.Hour)))
	n, err := s.PruneActs(ctx, start.Add(time.Minute), start.Add(2*time.Hour))
	check(t, err)
	same(t, "pruned", 0, n)
	same(t, "lines", "3 ended 1, 4 pruned 0", linesOf(t, s, 0, 10))
	verified(t, s)
}

func headsKept(t *testing.T, s rbac.AuditStore) {
	ctx := t.Context()
	h, end, err := s.LastHead(ctx)
	check(t, err)
	same(t, "no head", rbac.Head{}, h)
	same(t, "no end", rbac.ChainEnd{}, end)
	fill(t, s)
	chain := chainOf(s)
	first, err := chain.Sign(ctx, start)
	check(t, err)
	again, err := chain.Sign(ctx, start.Add(time.Hour))
	check(t, err)
	same(t, "a head of the same line", first, again)
	check(t, s.SaveHead(ctx, rbac.Head{Seq: first.Seq, At: start}))
	h, _, err = s.LastHead(ctx)
	check(t, err)
	same(t, "the head", first, h)
}

func chainWriters(t *testing.T, s rbac.AuditStore) {
	var writers sync.WaitGroup
	failed := make(chan error, 400)
	for range 4 {
		writers.Go(func() {
			for range 20 {
				id, err := s.RecordAct(t.Context(), rbac.Entry{At: start, Outcome: rbac.Started})
				if err == nil {
					err = s.FinishAct(t.Context(), id, rbac.Done, "", start)
				}
				failed <- err
			}
		})
	}
	writers.Wait()
	close(failed)
	for err := range failed {
		check(t, err)
	}
	same(t, "lines", 161, verified(t, s).Lines)
}
