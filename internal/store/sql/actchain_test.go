package sql

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

// Somebody who may write to the database changes the audit log there, and it is seen.
func TestChangedAuditLogs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		swap := "UPDATE act_lines SET seq = -1 WHERE seq = 4; UPDATE act_lines SET seq = 4 WHERE seq = 6; UPDATE act_lines SET seq = 6 WHERE seq = -1"
		for name, c := range map[string]struct{ statements, want string }{
			"an actor is changed":   {"UPDATE acts SET actor = 'bob' WHERE id = 2", "line 4: it was changed"},
			"an outcome is changed": {"UPDATE acts SET outcome = 'failed' WHERE id = 1", "line 3: it was changed"},
			"a detail is changed":   {"UPDATE acts SET detail = 'nothing' WHERE id = 1", "line 3: it was changed"},
			"a mark is removed":     {"UPDATE acts SET mark = '' WHERE id = 2", "line 4: it was changed"},
			"a time is changed":     {"UPDATE acts SET happened_at = happened_at + 1 WHERE id = 2", "line 4: the time of its entry 2"},
			"a time and its line's": {
				"UPDATE acts SET happened_at = 1 WHERE id = 2; UPDATE act_lines SET made_at = 1 WHERE act = 2",
				"line 4: it was changed",
			},
			"an outcome is taken back": {"UPDATE acts SET outcome = 'started' WHERE id = 1", "line 3: it was changed"},
			"an outcome is made up":    {"UPDATE acts SET outcome = 'done' WHERE id = 5", "line 7: no line says what entry 5 says"},
			"an entry is deleted":      {"DELETE FROM acts WHERE id = 3", "line 5: its entry 3 was deleted"},
			"a line is deleted":        {"DELETE FROM act_lines WHERE seq = 5", "line 5: it is missing"},
			"an entry and its line":    {"DELETE FROM acts WHERE id = 3; DELETE FROM act_lines WHERE act = 3", "line 5: it is missing"},
			"an entry is put in": {
				"INSERT INTO acts (" + actColumns + ") SELECT " + actColumns + " FROM acts WHERE id = 2",
				"no line says what entry 6 says",
			},
			"lines are exchanged": {swap, "line 4: it was not made after the line before it"},
			"entries are exchanged": {
				"UPDATE act_lines SET act = 9 WHERE act = 2; " +
					"UPDATE act_lines SET act = 2 WHERE act = 3; UPDATE act_lines SET act = 3 WHERE act = 9",
				"line 4: ",
			},
			"the end is cut off": {"DELETE FROM act_lines WHERE seq = 7; DELETE FROM acts WHERE id = 5", "line 7: the chain ends with line 7, not 6"},
			"the end is cut off and hid": {
				"DELETE FROM act_lines WHERE seq >= 6; " +
					"DELETE FROM acts WHERE id > 3; UPDATE act_end SET seq = 5, digest = (SELECT digest FROM act_lines WHERE seq = 5)",
				"line 6: it is missing: a head of line 6 was signed",
			},
			"the beginning is cut off": {
				"DELETE FROM act_lines WHERE seq < 4; DELETE FROM acts WHERE id = 1",
				"line 3: it is missing, and no line says that it was forgotten",
			},
			"entries are called older":  {"UPDATE act_lines SET act = 9 WHERE seq = 1", "line 1: it was changed"},
			"a signature is of nobody":  {"UPDATE act_heads SET signature = 'AAAA'", "line 6: the signature of its head is not good"},
			"a signature is of others":  {"UPDATE act_heads SET signer = 'me'", "line 6: the signature of its head is not good"},
			"a signature is no base64":  {"UPDATE act_heads SET signature = '?'", "line 6: the signature of its head is not good"},
			"a head is of another line": {"UPDATE act_heads SET seq = 5", "line 5: it is not the line whose head was signed"},
			"the end is another one":    {"UPDATE act_end SET digest = 'x'", "line 7: the end of the chain has another digest"},
			"the chain is thrown away":  {"DELETE FROM act_lines; UPDATE act_end SET seq = 0, digest = ''", "line 1: it is missing: a head of line 6"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := open(t)
				chain := recorded(t, s)
				for statement := range strings.SplitSeq(c.statements, "; ") {
					execute(t, s, statement)
				}
				_, err := chain.Verify(t.Context(), rbac.ChainEnd{})
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		}
	})
}

// recorded fills an audit log: lines 1 to 7, of which a head signs 6.
func recorded(t *testing.T, s *Store) *rbac.Chain {
	t.Helper()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	record := func(outcome rbac.Outcome) {
		t.Helper()
		at = at.Add(time.Minute)
		e := rbac.Entry{At: at, ActorKind: "user", Actor: "ann", Operation: fmt.Sprint("op.", at.Minute()), Outcome: outcome, Mark: rbac.BreakGlass}
		id, err := s.Audit.RecordAct(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if id == 1 {
			err = s.Audit.FinishAct(t.Context(), id, rbac.Done, "", at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	chain := rbac.NewChain(s.Audit, rbactest.Seal{}, slog.New(slog.DiscardHandler))
	for _, outcome := range []rbac.Outcome{rbac.Started, rbac.Denied, rbac.Failed, rbac.Done} {
		record(outcome)
	}
	if _, err := chain.Sign(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	record(rbac.Started)
	if _, err := chain.Verify(t.Context(), rbac.ChainEnd{}); err != nil {
		t.Fatalf("before anything was changed: %v", err)
	}
	return chain
}

func execute(t *testing.T, s *Store, statement string) {
	t.Helper()
	if err := s.write(t.Context(), func(ctx context.Context, q querier) error { _, err := q.exec(ctx, statement); return err }); err != nil {
		t.Fatal(err)
	}
}

// Entries from before there was a chain are no mistake, and are forgotten like others.
func TestAuditLogsFromBeforeTheChain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s, at := open(t), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		chain := rbac.NewChain(s.Audit, rbactest.Seal{}, slog.New(slog.DiscardHandler))
		for range 2 {
			execute(t, s, fmt.Sprintf(`INSERT INTO acts (happened_at, actor_kind, actor, token, operation, object, remote, request_id, outcome, detail)
				VALUES (%d, 'user', 'ann', '', 'old', '', '', '', 'done', '')`, micros(at)))
		}
		verify := func(lines int) {
			t.Helper()
			if found, err := chain.Verify(t.Context(), rbac.ChainEnd{}); err != nil || found.Lines != lines {
				t.Fatalf("%d lines, %v; want %d", found.Lines, err, lines)
			}
		}
		verify(0)
		if _, err := s.Audit.RecordAct(t.Context(), rbac.Entry{At: at.Add(time.Hour), Outcome: rbac.Done}); err != nil {
			t.Fatal(err)
		}
		verify(2)
		for _, step := range []struct {
			before time.Time
			pruned int
			lines  int
		}{{at.Add(time.Minute), 2, 2}, {at.Add(2 * time.Hour), 1, 1}} {
			n, err := s.Audit.PruneActs(t.Context(), step.before, at.Add(3*time.Hour))
			if err != nil || n != step.pruned {
				t.Fatalf("pruned %d, %v; want %d", n, err, step.pruned)
			}
			verify(step.lines)
		}
	})
}
