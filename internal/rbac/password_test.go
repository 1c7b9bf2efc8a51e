package rbac

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// cheap keeps tests quick.
var cheap = Cost{Passes: 1, MemoryKiB: 8, Threads: 1}

func TestAPasswordFitsItsHash(t *testing.T) {
	t.Parallel()
	h := NewHasher(cheap, 2)
	stored, err := h.Hash(t.Context(), "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := h.Hash(t.Context(), "correct horse battery"); again == stored {
		t.Error("the same password has the same hash: there is no salt")
	}
	// Hashes outlive a change of the cost.
	other := NewHasher(Cost{Passes: 2, MemoryKiB: 16, Threads: 1}, 1)
	for name, c := range map[string]struct {
		hasher           *Hasher
		stored, password string
		want             bool
	}{
		"right":           {h, stored, "correct horse battery", true},
		"right elsewhere": {other, stored, "correct horse battery", true},
		"wrong":           {h, stored, "correct horse batterz", false},
		"empty":           {h, stored, "", false},
		"no hash":         {h, "", "", false},
		"broken hash":     {h, stored[:len(stored)-4], "correct horse battery", false},
		"the dummy":       {h, "", "\x00", false},
	} {
		got, err := c.hasher.Check(t.Context(), c.stored, c.password)
		if got != c.want || err != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// TestKnownHash reads what another implementation wrote: the reference program,
// `echo -n password | argon2 somesalt -id -t 2 -m 16 -p 4 -l 32 -e` (RFC 9106).
func TestKnownHash(t *testing.T) {
	t.Parallel()
	const stored = "$argon2id$v=19$m=65536,t=2,p=4$c29tZXNhbHQ$GpZ3sK/oH9p7VIiV56G/64Zo/8GaUw434IimaPqxwCo"
	if ok, err := NewHasher(cheap, 1).Check(t.Context(), stored, "password"); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
}

func TestFewHashAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHasher(cheap, 1)
		h.slots <- struct{}{} // one computes, and is slow
		h.queue <- struct{}{}
		ended := make(chan error, 16)
		ctx, cancel := context.WithCancel(t.Context())
		for range 15 {
			go func() {
				_, err := h.Hash(ctx, "x")
				ended <- err
			}()
		}
		synctest.Wait()
		if _, err := h.Hash(ctx, "x"); fault.Of(err) != fault.Unavailable || fault.RetryAfter(err) == 0 {
			t.Errorf("one too many: %v", err)
		}
		cancel()
		for range 15 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("one that was given up: %v", err)
			}
		}
		if len(h.queue) != 1 || len(h.slots) != 1 {
			t.Errorf("%d wait and %d compute", len(h.queue), len(h.slots))
		}
	})
}

func TestBadPasswordsAreRefused(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]string{
		"short": "fewer than 10", strings.Repeat("x", 513): "more than 512", "hello-ANN-hello": "the user's name", "correct horse battery": "",
	} {
		err := checkPassword("ann", password)
		if (err == nil) != (want == "") || !strings.Contains(fault.Detail(err), want) || strings.Contains(fault.Detail(err), password) {
			t.Errorf("%.20q: %v, want %q", password, err, want)
		}
	}
}

func TestLocksGrow(t *testing.T) {
	t.Parallel()
	c := Config{MaxFailures: 3, Lockout: time.Minute}
	for failures, want := range map[int]time.Duration{
		0: 0, 2: 0, 3: time.Minute, 4: 2 * time.Minute, 8: 32 * time.Minute, 9: time.Hour, 1000: time.Hour,
	} {
		if got := c.lockedFor(failures); got != want {
			t.Errorf("%d failures: %s, want %s", failures, got, want)
		}
	}
	c.Lockout = 3 * time.Hour
	if got := c.lockedFor(50); got != 3*time.Hour {
		t.Errorf("a longer setting: %s", got)
	}
}

// FuzzHash: what is accepted says the same again, and costs no more than is allowed.
func FuzzHash(f *testing.F) {
	f.Add(NewHasher(cheap, 1).dummy)
	f.Add("$argon2id$v=19$m=65536,t=2,p=4$c29tZXNhbHQ$GpZ3sK/oH9p7VIiV56G/64Zo/8GaUw434IimaPqxwCo")
	f.Add("$argon2id$v=19$m=4294967295,t=1,p=1$c29tZXNhbHQ$")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseHash(text)
		if err != nil {
			return
		}
		if s.cost.MemoryKiB > 1<<20 || s.cost.Passes == 0 || s.cost.Threads == 0 || s.cost.Passes > 100 {
			t.Errorf("cost %+v", s.cost)
		}
		if got := (&Hasher{cost: s.cost}).encode(s.salt, s.hash); got != text {
			t.Errorf("%q became %q", text, got)
		}
	})
}
