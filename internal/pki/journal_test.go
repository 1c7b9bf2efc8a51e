package pki_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// fleetOf is a CA with a good node and a revoked one, and a name that was cleaned.
type fleetOf struct {
	cfg             pki.Config
	store           *pkitest.Memory
	ca              *pki.Authority
	good, bad, gone []byte
}

func newFleet(t *testing.T) *fleetOf {
	t.Helper()
	f := &fleetOf{cfg: pki.Config{Dir: t.TempDir(), Autosign: allowEvery}, store: pkitest.NewMemory()}
	f.ca = open(t, f.cfg, f.store)
	for name, text := range map[fleet.Certname]*[]byte{"good": &f.good, "bad": &f.bad, "gone": &f.gone} {
		submit(t, f.ca, pkitest.CSR{Name: string(name)})
		c, err := f.ca.Certificate(t.Context(), name)
		must(t, err)
		*text = c.PEM
	}
	must(t, f.ca.Revoke(t.Context(), "bad"))
	_, err := f.ca.Clean(t.Context(), "gone")
	must(t, err)
	return f
}

func (f *fleetOf) journal(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.cfg.Dir, "journal-*.jsonl"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("journals: %v", found)
	}
	return found[0]
}

// whole checks that nothing is forgotten, by openssl's judgement.
func (f *fleetOf) whole(t *testing.T, store pki.Store) *pki.Authority {
	t.Helper()
	a := open(t, f.cfg, store)
	if out, ok := verified(t, a, f.good); !ok {
		t.Errorf("openssl says of the good one: %s", out)
	}
	for name, text := range map[string][]byte{"bad": f.bad, "gone": f.gone} {
		if out, ok := verified(t, a, text); ok || !strings.Contains(out, "certificate revoked") {
			t.Errorf("openssl says of %s: %s", name, out)
		}
		wantKind(t, a.Revocations.CheckPeer(parse(t, text)), fault.Denied)
	}
	must(t, a.Revocations.CheckPeer(parse(t, f.good)))
	entries, err := a.List(t.Context())
	must(t, err)
	var states []string
	for _, e := range entries {
		states = append(states, string(e.Certname)+" "+string(e.State))
	}
	if got := strings.Join(states, ", "); got != "bad revoked, good signed" {
		t.Errorf("the names stand at: %s", got)
	}
	submit(t, a, pkitest.CSR{Name: "next"}) // and it goes on
	return a
}

// Whatever is lost or put in place of something else, the server does not start as if nothing
// had been revoked, and adopting forgets nothing.
func TestTheCAForgetsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		harm    func(t *testing.T, f *fleetOf) *pkitest.Memory
		says    string
		discard bool
	}{
		{"the database was deleted", func(*testing.T, *fleetOf) *pkitest.Memory { return pkitest.NewMemory() }, "knows nothing of this CA", false},
		{"another server's database", func(t *testing.T, _ *fleetOf) *pkitest.Memory { t.Helper(); return newFleet(t).store }, "belongs to another CA", true},
		{"another server's CA directory", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			other := newFleet(t)
			f.cfg, f.good, f.bad, f.gone, other.store = other.cfg, other.good, other.bad, other.gone, f.store
			return f.store
		}, "belongs to another CA", true},
		{"an older database", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			old := f.store.Clone()
			submit(t, f.ca, pkitest.CSR{Name: "late"})
			_, err := f.ca.Clean(t.Context(), "late")
			must(t, err)
			return old
		}, "the database is older than the CA", false},
		{"a database that is one change older", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			submit(t, f.ca, pkitest.CSR{Name: "late"})
			old := f.store.Clone()
			_, err := f.ca.Clean(t.Context(), "late")
			must(t, err)
			return old
		}, "the database is older than the CA", false},
		{"an older CA directory", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			old := readFile(t, f.journal(t))
			submit(t, f.ca, pkitest.CSR{Name: "late"})
			_, err := f.ca.Clean(t.Context(), "late")
			must(t, err)
			writeFile(t, f.journal(t), string(old))
			return f.store
		}, "the CA directory is older than the database", false},
		{"a copy that went its own way", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			twin, old := f.store.Clone(), readFile(t, f.journal(t))
			for _, store := range []pki.Store{twin, f.store} {
				writeFile(t, f.journal(t), string(old))
				a := open(t, f.cfg, store)
				submit(t, a, pkitest.CSR{Name: "late"})
				_, err := a.Clean(t.Context(), "late")
				must(t, err)
			}
			return twin
		}, "have gone different ways", false},
		{"no journal", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			must(t, os.Remove(f.journal(t)))
			return f.store
		}, "is missing", false},
		{"a damaged journal", func(t *testing.T, f *fleetOf) *pkitest.Memory {
			t.Helper()
			text := readFile(t, f.journal(t))
			writeFile(t, f.journal(t), strings.Replace(string(text), `"revoked":["`, `"revoked":["1`, 1))
			return f.store
		}, "is damaged", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, f := t.Context(), newFleet(t)
			_, err := f.ca.Requests.NewJoinToken(ctx, "spent", time.Hour)
			must(t, err)
			store := c.harm(t, f)
			_, err = pki.Open(ctx, f.cfg, store, quiet)
			if err == nil || !strings.Contains(fault.Detail(err), c.says) || !strings.Contains(fault.Detail(err), "tutti ca adopt") {
				t.Fatalf("it starts, or says: %v", err)
			}
			if c.discard {
				_, err = pki.Adopt(ctx, f.cfg, store, false, quiet)
				wantKind(t, err, fault.Conflict)
			}
			list, err := f.store.NextCRLNumber(ctx)
			must(t, err)
			adopted, err := pki.Adopt(ctx, f.cfg, store, c.discard, quiet)
			must(t, err)
			if adopted.Revoked < 2 || (adopted.Discarded > 0) != c.discard {
				t.Errorf("adopted %+v", adopted)
			}
			a := f.whole(t, store)
			if n, err := store.NextCRLNumber(ctx); err != nil || n.Cmp(list) <= 0 {
				t.Errorf("list number %s after %s: %v", n, list, err)
			}
			submit(t, a, pkitest.CSR{Name: "later"})
			open(t, f.cfg, store)
		})
	}
}

// With neither journal nor database nobody knows what was revoked: only a backup does.
func TestAdoptGuessesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	must(t, os.Remove(f.journal(t)))
	_, err := pki.Adopt(t.Context(), f.cfg, pkitest.NewMemory(), true, quiet)
	wantKind(t, err, fault.Conflict)
	_, err = pki.Open(t.Context(), f.cfg, pkitest.NewMemory(), quiet)
	wantKind(t, err, fault.NotFound)
	must(t, os.Remove(filepath.Join(f.cfg.Dir, "ca.pem")))
	_, err = pki.Open(t.Context(), f.cfg, f.store, quiet)
	wantKind(t, err, fault.Conflict)
}

// killedStore ends with the process before or after it has taken a change in.
type killedStore struct {
	*pkitest.Memory
	before, after bool
}

var errKilled = errors.New("the process was killed")

func (s *killedStore) ChangeCA(ctx context.Context, c pki.Change) error {
	if s.before {
		return errKilled
	}
	if err := s.Memory.ChangeCA(ctx, c); err != nil || !s.after {
		return err
	}
	return errKilled
}

// Wherever between journal and database the server is killed, the next start goes on by itself,
// and what stands in the journal holds.
func TestAKillBetweenJournalAndDatabase(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*killedStore){
		"before the database": func(s *killedStore) { s.before = true },
		"after the database":  func(s *killedStore) { s.after = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, f := t.Context(), newFleet(t)
			for _, step := range []func(a *pki.Authority) error{
				func(a *pki.Authority) error {
					_, err := a.Requests.Submit(ctx, "late", pkitest.CSR{Name: "late"}.PEM(t), "")
					return err
				},
				func(a *pki.Authority) error { return a.Revoke(ctx, "late") },
				func(a *pki.Authority) error { return a.Forget(ctx, "late") },
			} {
				store := &killedStore{Memory: f.store}
				a := open(t, f.cfg, store)
				kill(store)
				if err := step(a); !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				a = open(t, f.cfg, f.store)
				entry, err := a.Show(ctx, "late")
				switch {
				case err == nil && entry.State == pki.Revoked:
					wantKind(t, a.Revocations.CheckPeer(parse(t, entry.PEM)), fault.Denied)
				case err == nil:
					must(t, a.Revocations.CheckPeer(parse(t, entry.PEM)))
				}
			}
			_, err := f.ca.Show(ctx, "late")
			wantKind(t, err, fault.NotFound)
			f.whole(t, f.store)
		})
	}
}

// A database that fails for a moment is given what it missed before anything else.
func TestADatabaseThatFailedCatchesUp(t *testing.T) {
	t.Parallel()
	ctx, f := t.Context(), newFleet(t)
	store := &killedStore{Memory: f.store, before: true}
	a, err := pki.Open(ctx, f.cfg, store, quiet)
	must(t, err)
	if err := a.Revoke(ctx, "good"); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	store.before = false
	must(t, a.Refresh(ctx))
	wantKind(t, a.Revocations.CheckPeer(parse(t, f.good)), fault.Denied)
	if out, ok := verified(t, a, f.good); ok {
		t.Errorf("openssl says: %s", out)
	}
}

// A line that was cut off was never answered for: it is passed over. So is a note that was lost.
func TestAJournalThatWasCutOff(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(text []byte) []byte{
		"half a line": func(text []byte) []byte { return append(text, `{"text":{"seq":9,"iss`...) },
		"half a note": func(text []byte) []byte { return text[:len(text)-3] },
		"no note":     func(text []byte) []byte { return text[:bytes.LastIndex(text, []byte(`{"done"`))] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			writeFile(t, f.journal(t), string(harm(readFile(t, f.journal(t)))))
			f.whole(t, f.store)
			open(t, f.cfg, f.store)
		})
	}
}

// An import that is killed before the database has it is finished by the next start.
func TestAKilledImportIsFinished(t *testing.T) {
	t.Parallel()
	root := newOpensslCA(t, "Old Root", nil)
	cfg, store := pki.Config{Dir: t.TempDir()}, pkitest.NewMemory()
	open(t, cfg, store)
	_, err := open(t, cfg, unrestated{store}).Import(t.Context(), root.puppet(t, root.cert, root.list))
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	a := open(t, cfg, store)
	bundle, _ := a.Bundle()
	if !bytes.Contains(bundle, []byte(root.cert[:200])) {
		t.Errorf("the bundle is\n%s", bundle)
	}
	submit(t, a, pkitest.CSR{Name: "web1"})
	open(t, cfg, store)
}

type unrestated struct{ *pkitest.Memory }

func (unrestated) RestateCA(context.Context, pki.Anchor, []pki.Certificate) error { return errKilled }
