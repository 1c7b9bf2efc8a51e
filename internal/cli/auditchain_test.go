package cli

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

func goodHead(h rbac.Head) error {
	return rbactest.Seal{}.CheckAudit(h.Signer, h.Text(), h.Signature)
}

// exportRows is the rows of an export: six lines of which a head signs five.
func exportRows(tb testing.TB, part bool) []string {
	tb.Helper()
	store, at := rbactest.New(), time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	chain := rbac.NewChain(store, rbactest.Seal{}, slog.New(slog.DiscardHandler))
	for i := range 5 {
		if i == 4 {
			if _, err := chain.Sign(tb.Context(), at); err != nil {
				tb.Fatal(err)
			}
		}
		e := rbac.Entry{At: at, Actor: "<ann> & \"bürn\"\u2028", Outcome: rbac.Denied, Detail: fmt.Sprint("no ", i)}
		if _, err := store.RecordAct(tb.Context(), e); err != nil {
			tb.Fatal(err)
		}
	}
	var file bytes.Buffer
	after := int64(0)
	if part {
		after = 3
	}
	err := writeExport(&file, part, func(page *api.AuditChainPage) error { // two lines a page
		found, err := chain.Page(tb.Context(), after, time.Time{}, 2)
		for _, l := range found.Lines {
			page.Lines = append(page.Lines, api.AuditLine{Text: string(l.Text(l.Entry)), Digest: l.Digest})
		}
		for _, h := range found.Heads {
			page.Heads = append(page.Heads, api.AuditHead{Line: h.Seq, Digest: h.Digest, At: h.At, Signer: h.Signer, Signature: h.Signature})
		}
		if len(found.Lines) == 2 {
			after += 2
			page.Next = after
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return slices.Collect(strings.Lines(file.String()))
}

func checkRows(rows []string) (rbac.Checked, error) {
	return checkExport(strings.NewReader(strings.Join(rows, "")), goodHead)
}

func TestExportsAreChecked(t *testing.T) {
	t.Parallel()
	for _, part := range []bool{false, true} {
		rows := exportRows(t, part)
		found, err := checkRows(rows)
		want := rbac.Checked{First: 1, Last: 6, Lines: 6, Heads: 1, SignedThrough: 5, Digest: found.Digest}
		if part {
			want.First, want.Lines = 4, 3
		}
		if err != nil || found != want {
			t.Fatalf("got %+v, %v, want %+v", found, err, want)
		}
		change := func(name string, changed []string) {
			t.Helper()
			if _, err := checkRows(changed); err == nil {
				t.Errorf("%s: taken for whole:\n%s", name, strings.Join(changed, ""))
			}
		}
		for i := range rows {
			if i > 0 && !strings.Contains(rows[i], `"head"`) && (!part || i > 1) { // a part may begin later, and any head may be left out
				change(fmt.Sprint("without row ", i), slices.Delete(slices.Clone(rows), i, i+1))
			}
			change(fmt.Sprint("cut off before row ", i), rows[:i])
			if i > 0 {
				swapped := slices.Clone(rows)
				swapped[i-1], swapped[i] = swapped[i], swapped[i-1]
				change(fmt.Sprint("rows exchanged at ", i), swapped)
			}
			if strings.Contains(rows[i], "no ") {
				changed := slices.Clone(rows)
				changed[i] = strings.Replace(rows[i], "no ", "on ", 1)
				change(fmt.Sprint("changed row ", i), changed)
			}
			change(fmt.Sprint("row twice ", i), slices.Insert(slices.Clone(rows), i, rows[i]))
		}
		if !part {
			change("a part that does not say so", slices.Concat(rows[:1], rows[3:]))
		}
	}
}

func FuzzExport(f *testing.F) {
	f.Add(strings.Join(exportRows(f, false), ""))
	f.Add(strings.Join(exportRows(f, true), ""))
	f.Add(`{"tutti_audit":1}` + "\n" + `{"end":0}`)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := checkExport(strings.NewReader(text), goodHead)
		if err == nil && (found.Lines != int(found.Last-found.First+1) && found.Lines > 0 || found.SignedThrough > found.Last) {
			t.Errorf("%+v", found)
		}
	})
}
