package rbac_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

func TestALoginGivesATokenForATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := open(t)
		create(t, a, "ann", "viewer")
		issued, err := login(t, a, "ann", password)
		check(t, err)
		actor, err := a.Bearer(t.Context(), issued.Text+"\n")
		check(t, err)
		viewer, err := a.Role(t.Context(), "viewer")
		check(t, err)
		want := fleet.Actor{Kind: fleet.UserActor, Name: "ann", Token: issued.ID, Grants: viewer.Grants}
		if diff := cmp.Diff(want, actor); diff != "" {
			t.Errorf("actor (-want +got):\n%s", diff)
		}
		check(t, a.Flush(t.Context()))
		b, err := store.Bearer(t.Context(), issued.Hash)
		check(t, err)
		if !b.Token.UsedAt.Equal(time.Now()) || strings.Contains(fmt.Sprint(b), issued.Text) {
			t.Errorf("stored %+v", b)
		}
		<-time.After(8 * time.Hour)
		_, err = a.Bearer(t.Context(), issued.Text)
		wantKind(t, "an expired token", err, fault.Denied)
	})
}

func TestWrongLoginsAreOneAnswerInOneTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := open(t)
		for _, name := range []string{"ann", "off", "locked"} {
			create(t, a, name, "viewer")
		}
		create(t, a, "cid")
		change := func(name string, to func(*rbac.User)) {
			_, err := store.ChangeUser(t.Context(), name, func(u *rbac.User) error { to(u); return nil })
			check(t, err)
		}
		change("off", func(u *rbac.User) { u.Disabled = true })
		change("locked", func(u *rbac.User) { u.LockedUntil = time.Now().Add(time.Hour) })
		change("cid", func(u *rbac.User) { u.Password = "" })
		answers := map[string]bool{}
		for name, secret := range map[string]string{
			"ann": "wrong password", "nobody": password, "off": password, "locked": password, "cid": "", "": "", strings.Repeat("x", 200): password,
		} {
			start := time.Now()
			_, err := login(t, a, name, secret)
			wantKind(t, "login of "+name, err, fault.Denied)
			answers[fmt.Sprint(fault.Detail(err), time.Since(start))] = true
		}
		if len(answers) != 1 {
			t.Errorf("the answers differ: %v", answers)
		}
	})
}

func TestFailuresLockForAGrowingTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, store := open(t)
		create(t, a, "ann")
		fail := func(times int) {
			for range times {
				_, err := login(t, a, "ann", "wrong password")
				wantKind(t, "a wrong password", err, fault.Denied)
			}
		}
		locked := func() time.Duration {
			u, err := store.User(t.Context(), "ann")
			check(t, err)
			return time.Until(u.LockedUntil).Round(time.Second)
		}
		fail(4)
		if _, err := login(t, a, "ann", password); err != nil {
			t.Fatalf("after four failures: %v", err)
		}
		fail(5)
		if got := locked(); got != time.Minute {
			t.Errorf("locked for %s", got)
		}
		_, err := login(t, a, "ann", password)
		wantKind(t, "the right password, but locked", err, fault.Denied)
		fail(1) // at a closed door
		if got := locked(); got > time.Minute {
			t.Errorf("trying made it %s", got)
		}
		<-time.After(2 * time.Minute)
		fail(1)
		if got := locked(); got != 2*time.Minute {
			t.Errorf("then locked for %s", got)
		}
		<-time.After(2 * time.Minute)
		if _, err := login(t, a, "ann", password); err != nil {
			t.Errorf("after the lock: %v", err)
		}
	})
}

func TestLoginsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := open(t)
		var last error
		for range 30 {
			_, last = a.Login(t.Context(), rbac.Attempt{Name: "nobody", Password: "x"})
		}
		wantKind(t, "the same name from many addresses", last, fault.Unavailable)
		for range 100 {
			last = a.Knock("192.0.2.9")
		}
		wantKind(t, "many tries from one address", last, fault.Unavailable)
		if fault.RetryAfter(last) <= 0 {
			t.Error("nobody says when to come back")
		}
	})
}

func TestAPasswordIsChangedByItsOwner(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, _ := open(t)
	create(t, a, "ann", "viewer")
	here, err := login(t, a, "ann", password)
	check(t, err)
	there, err := login(t, a, "ann", password)
	check(t, err)
	ann, err := a.Bearer(ctx, here.Text)
	check(t, err)
	ci, err := a.NewToken(ctx, ann, "ci", time.Hour, nil)
	check(t, err)
	const fresh = "another good one"
	wantKind(t, "without the old one", a.ChangePassword(ctx, ann, "guess guess guess", fresh), fault.Denied)
	check(t, a.ChangePassword(ctx, ann, password, fresh))
	for what, c := range map[string]struct {
		text string
		good bool
	}{"this login": {here.Text, true}, "the other login": {there.Text, false}, "a labelled token": {ci.Text, true}} {
		if _, err := a.Bearer(ctx, c.text); (err == nil) != c.good {
			t.Errorf("%s: %v, want good %v", what, err, c.good)
		}
	}
	if _, err := login(t, a, "ann", fresh); err != nil {
		t.Errorf("the new password: %v", err)
	}
}

// The token of the data directory is made known once: what was revoked or has expired stays so, however often the
// server starts.
func TestTheAdministratorsTokenIsMadeKnownOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		a, _ := open(t)
		old, fresh, last := rbac.NewSecret(), rbac.NewSecret(), rbac.NewSecret()
		for _, secret := range []string{old, old, fresh, old} {
			check(t, a.KeepAdmin(ctx, secret, time.Hour, ""))
		}
		_, err := a.Bearer(ctx, old)
		wantKind(t, "the token before", err, fault.Denied)
		actor, err := a.Bearer(ctx, fresh)
		check(t, err)
		if rbac.Allow(actor, fleet.UserWrite, fleet.Object{}) != nil || !actor.BreakGlass {
			t.Errorf("%+v", actor)
		}
		_, err = a.RevokeTokens(ctx, root, "admin")
		check(t, err)
		check(t, a.KeepAdmin(ctx, fresh, time.Hour, ""))
		_, err = a.Bearer(ctx, fresh)
		wantKind(t, "revoked, after a start", err, fault.Denied)
		check(t, a.KeepAdmin(ctx, last, time.Hour, ""))
		_, err = a.Bearer(ctx, last)
		check(t, err)
		<-time.After(time.Hour)
		check(t, a.KeepAdmin(ctx, last, time.Hour, ""))
		_, err = a.Bearer(ctx, last)
		wantKind(t, "expired, after a start", err, fault.Denied)
	})
}

// Each of several servers has a token of its own in its data directory: the start of one ends no other's.
func TestTheAdministratorsTokensOfSeveralServers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, _ := open(t)
	first, second, fresh := rbac.NewSecret(), rbac.NewSecret(), rbac.NewSecret()
	check(t, a.KeepAdmin(ctx, first, time.Hour, "pup-1/1"))
	check(t, a.KeepAdmin(ctx, second, time.Hour, "pup-2/1"))
	check(t, a.KeepAdmin(ctx, fresh, time.Hour, "pup-2/1"))
	for _, secret := range []string{first, fresh} {
		if actor, err := a.Bearer(ctx, secret); err != nil || !actor.BreakGlass {
			t.Errorf("%+v, %v", actor, err)
		}
	}
	_, err := a.Bearer(ctx, second)
	wantKind(t, "the token before of the same server", err, fault.Denied)
}
