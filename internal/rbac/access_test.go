package rbac_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/rbac/rbactest"
)

const password = "correct horse battery"

var (
	quiet = slog.New(slog.DiscardHandler)
	root  = fleet.Actor{Kind: fleet.UserActor, Name: "root", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
)

func open(t *testing.T) (*rbac.Access, *rbactest.Fake) {
	t.Helper()
	store := rbactest.New()
	return rbac.NewAccess(rbac.AccessParts{
		Store: store, Hasher: rbac.NewHasher(rbac.Cost{Passes: 1, MemoryKiB: 8, Threads: 1}, 2), Config: rbac.DefaultConfig,
		CheckScope: func(condition string) error {
			if condition == "bad" {
				return fault.New(fault.Invalid, "the condition is bad")
			}
			return nil
		}, Now: time.Now, Log: quiet,
	}), store
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.Of(err) != kind {
		t.Errorf("%s: got %v, want %s", what, err, kind)
	}
}

// create makes a person with the password.
func create(t *testing.T, a *rbac.Access, name string, roles ...string) {
	t.Helper()
	_, err := a.CreateUser(t.Context(), root, rbac.User{Name: name, Kind: rbac.Person, Roles: roles}, password)
	check(t, err)
}

func login(t *testing.T, a *rbac.Access, name, secret string, roles ...string) (rbac.Issued, error) {
	t.Helper()
	return a.Login(t.Context(), rbac.Attempt{Name: name, Password: secret, Roles: roles})
}

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

func TestANarrowTokenStaysNarrow(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	create(t, a, "ann", rbac.Administrator)
	issued, err := login(t, a, "ann", password, "viewer")
	check(t, err)
	narrow, err := a.Bearer(t.Context(), issued.Text)
	check(t, err)
	if rbac.Allow(narrow, fleet.NodeRead, fleet.Object{}) != nil || rbac.Allow(narrow, fleet.NodePurge, fleet.Object{}) == nil {
		t.Error("a narrow token may not what it should, or what it should not")
	}
	for name, roles := range map[string][]string{"wide": {rbac.Administrator}, "full": nil, "other": {"operator"}} {
		_, err := a.NewToken(t.Context(), narrow, name, time.Hour, roles)
		wantKind(t, "a token "+name, err, fault.Denied)
	}
	if _, err := a.NewToken(t.Context(), narrow, "same", time.Hour, []string{"viewer"}); err != nil {
		t.Errorf("as narrow: %v", err)
	}
	// Neither does it get a password to log in with: not before the full token gave one, and then not without it.
	_, err = a.CreateUser(t.Context(), root, rbac.User{Name: "cid", Kind: rbac.Person, Roles: []string{rbac.Administrator}}, "")
	check(t, err)
	full := fleet.Actor{Kind: fleet.UserActor, Name: "cid", Grants: root.Grants}
	narrowed := full
	narrowed.Narrowed, narrowed.Within = true, narrow.Within
	wantKind(t, "a first password", a.ChangePassword(t.Context(), narrowed, "", password), fault.Denied)
	check(t, a.ChangePassword(t.Context(), full, "", password))
	wantKind(t, "a password without the old one", a.ChangePassword(t.Context(), narrowed, "", password+"!"), fault.Denied)
	for label, c := range map[string]struct {
		life  time.Duration
		roles []string
		kind  fault.Kind
	}{
		"a,b": {kind: fault.Invalid}, " padded": {kind: fault.Invalid}, strings.Repeat("l", 201): {kind: fault.Invalid}, "two\nlines": {kind: fault.Invalid}, "long": {400 * 24 * time.Hour, nil, fault.Invalid}, "none": {0, []string{"none"}, fault.NotFound},
	} {
		full := fleet.Actor{Kind: fleet.UserActor, Name: "ann", Grants: root.Grants}
		_, err := a.NewToken(t.Context(), full, label, c.life, c.roles)
		wantKind(t, "label "+label, err, c.kind)
	}
	// A token never may more than its owner at the moment.
	off := true
	_, err = a.EditUser(t.Context(), root, "ann", rbac.UserEdit{Disabled: &off})
	check(t, err)
	_, err = a.Bearer(t.Context(), issued.Text)
	wantKind(t, "a token of a disabled user", err, fault.Denied)
}

func TestNobodyRisesByEditingUsers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, _ := open(t)
	_, err := a.CreateRole(ctx, root, rbac.Role{Name: "people", Grants: []fleet.Grant{{Permission: fleet.UserWrite}, {Permission: fleet.TokenWrite}}})
	check(t, err)
	create(t, a, "boss", rbac.Administrator)
	create(t, a, "eve", "people")
	create(t, a, "zed")
	eve := fleet.Actor{Kind: fleet.UserActor, Name: "eve", Grants: []fleet.Grant{{Permission: fleet.UserWrite}, {Permission: fleet.TokenWrite}, {Permission: fleet.RoleWrite}}}
	wide, off := []string{rbac.Administrator}, true
	for what, try := range map[string]func() error{
		"create an administrator": func() error {
			_, err := a.CreateUser(ctx, eve, rbac.User{Name: "eva", Kind: rbac.Person, Roles: wide}, password)
			return err
		},
		"rise":             func() error { _, err := a.EditUser(ctx, eve, "eve", rbac.UserEdit{Roles: &wide}); return err },
		"disable the boss": func() error { _, err := a.EditUser(ctx, eve, "boss", rbac.UserEdit{Disabled: &off}); return err },
		"delete the boss":  func() error { return a.DeleteUser(ctx, eve, "boss") },
		"be the boss":      func() error { return a.SetPassword(ctx, eve, "boss", password) },
		"log the boss out": func() error { _, err := a.RevokeTokens(ctx, eve, "boss"); return err },
		"make a role of all": func() error {
			_, err := a.CreateRole(ctx, eve, rbac.Role{Name: "all", Grants: root.Grants})
			return err
		},
		"widen a role": func() error {
			_, err := a.EditRole(ctx, eve, rbac.Role{Name: "people", Grants: root.Grants})
			return err
		},
		"give a certificate it": func() error {
			_, err := a.CreateUser(ctx, eve, rbac.User{Name: "n.test", Kind: rbac.Node, Roles: wide}, "")
			return err
		},
	} {
		wantKind(t, what, try(), fault.Denied)
	}
	for what, err := range map[string]error{
		"set zed's password": a.SetPassword(ctx, eve, "zed", "another good one"),
		"delete zed":         a.DeleteUser(ctx, eve, "zed"),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Two people change a user at the same time: the second is told, and takes away nothing of the first.
func TestRolesAreNotOverwritten(t *testing.T) {
	t.Parallel()
	a, _ := open(t)
	create(t, a, "ann", "viewer")
	had, first, second := []string{"viewer"}, []string{"viewer", "operator"}, []string{"viewer", "auditor"}
	_, err := a.EditUser(t.Context(), root, "ann", rbac.UserEdit{Roles: &first, Had: &had})
	check(t, err)
	_, err = a.EditUser(t.Context(), root, "ann", rbac.UserEdit{Roles: &second, Had: &had})
	wantKind(t, "a change of what is gone", err, fault.Conflict)
	if !strings.Contains(fault.Detail(err), "operator, viewer now") {
		t.Errorf("it is not said which roles there are now: %v", err)
	}
	reordered := []string{"viewer", "operator", "viewer"}
	_, err = a.EditUser(t.Context(), root, "ann", rbac.UserEdit{Roles: &second, Had: &reordered})
	check(t, err)
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, _ := open(t)
	check(t, a.KeepAdmin(ctx, rbac.NewSecret(), 0, ""))
	create(t, a, "ann")
	none, off := []string{}, true
	grants := []fleet.Grant{{Permission: fleet.NodeRead}}
	user := func(u rbac.User, secret string) func() error {
		return func() error { _, err := a.CreateUser(ctx, root, u, secret); return err }
	}
	role := func(r rbac.Role) func() error {
		return func() error { _, err := a.CreateRole(ctx, root, r); return err }
	}
	for what, c := range map[string]struct {
		kind fault.Kind
		try  func() error
	}{
		"a name of two words":  {fault.Invalid, user(rbac.User{Name: "ann smith", Kind: rbac.Person}, password)},
		"the name that is @me": {fault.Invalid, user(rbac.User{Name: "@me", Kind: rbac.Person}, password)},
		"a taken name":         {fault.Conflict, user(rbac.User{Name: "ann", Kind: rbac.Person}, password)},
		"another kind":         {fault.Invalid, user(rbac.User{Name: "bob", Kind: "robot"}, password)},
		"an unknown role":      {fault.NotFound, user(rbac.User{Name: "bob", Kind: rbac.Person, Roles: []string{"none"}}, password)},
		"a short password":     {fault.Invalid, user(rbac.User{Name: "bob", Kind: rbac.Person}, "short")},
		"a node with password": {fault.Invalid, user(rbac.User{Name: "web-1", Kind: rbac.Node}, password)},
		"a node with a path":   {fault.Invalid, user(rbac.User{Name: "../x", Kind: rbac.Node}, "")},
		"delete the admin":     {fault.Conflict, func() error { return a.DeleteUser(ctx, root, "admin") }},
		"disable the admin": {fault.Conflict, func() error {
			_, err := a.EditUser(ctx, root, "admin", rbac.UserEdit{Disabled: &off})
			return err
		}},
		"make the admin none": {fault.Conflict, func() error {
			_, err := a.EditUser(ctx, root, "admin", rbac.UserEdit{Roles: &none})
			return err
		}},
		"a built-in role":        {fault.Conflict, role(rbac.Role{Name: "viewer", Grants: grants})},
		"change a built-in role": {fault.Conflict, func() error { _, err := a.EditRole(ctx, root, rbac.Role{Name: "viewer", Grants: grants}); return err }},
		"delete a built-in role": {fault.Conflict, func() error { return a.DeleteRole(ctx, root, "viewer") }},
		"a role of nothing":      {fault.Invalid, role(rbac.Role{Name: "r"})},
		"an unknown permission":  {fault.Invalid, role(rbac.Role{Name: "r", Grants: []fleet.Grant{{Permission: "node:eat"}}})},
		"no operation's right":   {fault.Invalid, role(rbac.Role{Name: "r", Grants: []fleet.Grant{{Permission: fleet.Self}}})},
		"a bad pattern":          {fault.Invalid, role(rbac.Role{Name: "r", Grants: []fleet.Grant{{Permission: fleet.CodeRead, Environments: []string{"a b"}}}})},
		"a bad condition":        {fault.Invalid, role(rbac.Role{Name: "r", Grants: []fleet.Grant{{Permission: fleet.NodeRead, Nodes: "bad"}}})},
		"edit what there is not": {fault.NotFound, func() error { _, err := a.EditUser(ctx, root, "bob", rbac.UserEdit{Unlock: true}); return err }},
	} {
		wantKind(t, what, c.try(), c.kind)
	}
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

func TestACertificateHasTheRolesOfItsName(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, _ := open(t)
	_, err := a.CreateUser(ctx, root, rbac.User{Name: "ci.test", Kind: rbac.Node, Roles: []string{"deployer"}}, "")
	check(t, err)
	create(t, a, "web-1", rbac.Administrator) // a person who is called like a node
	for name, want := range map[string]bool{"ci.test": true, "web-1": false, "db-1": false} {
		actor, err := a.Certificate(ctx, fleet.Actor{Kind: fleet.NodeActor, Name: name})
		check(t, err)
		if got := rbac.Allow(actor, fleet.CodeDeploy, fleet.Object{}) == nil; got != want {
			t.Errorf("%s may deploy: %v, want %v", name, got, want)
		}
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
