package rbac_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

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
		"a,b": {kind: fault.Invalid}, " padded": {kind: fault.Invalid}, strings.Repeat("l", 201): {kind: fault.Invalid}, "two\nlines": {kind: fault.Invalid},
		"long": {400 * 24 * time.Hour, nil, fault.Invalid}, "none": {0, []string{"none"}, fault.NotFound},
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
	eve := fleet.Actor{
		Kind: fleet.UserActor, Name: "eve", Grants: []fleet.Grant{{Permission: fleet.UserWrite}, {Permission: fleet.TokenWrite}, {Permission: fleet.RoleWrite}},
	}
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
