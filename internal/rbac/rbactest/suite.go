package rbactest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// RunStore checks a store of users, roles and tokens. open returns an empty one
// for each case; it cleans up through t.
func RunStore(t *testing.T, open func(t *testing.T) rbac.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, rbac.Store){
		"users are kept":                     userKept,
		"a user is changed whole or not":     userChanged,
		"changes of a user do not get lost":  userContended,
		"users are listed by page":           userPages,
		"roles are kept":                     roleKept,
		"a role in use stays":                roleInUse,
		"a token is found with its owner":    tokenFound,
		"tokens have owners and labels":      tokenLabels,
		"tokens are revoked":                 tokenRevoked,
		"the last use of tokens is noted":    tokenTouched,
		"a secret is seen for ever":          secretSeen,
		"tokens past their time are dropped": tokenPruned,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func secretSeen(t *testing.T, s rbac.Store) {
	t.Helper()
	ctx, known, other := t.Context(), fleet.DigestOf([]byte("known")), fleet.DigestOf([]byte("other"))
	for range 2 {
		check(t, s.SeeAdminSecret(ctx, known, start))
	}
	for hash, want := range map[fleet.Digest]bool{known: true, other: false} {
		seen, err := s.AdminSecretSeen(ctx, hash)
		check(t, err)
		same(t, "seen", want, seen)
	}
}

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

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

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ann() rbac.User {
	return rbac.User{ //nolint:gosec // no password
		Name: "ann", Kind: rbac.Person, Roles: []string{"deployer", "viewer"}, Password: "$argon2id$x", Disabled: true,
		CreatedAt: start, ChangedAt: start.Add(time.Second), ChangedBy: "admin", LoginAt: start.Add(time.Minute),
		Failures: 3, LockedUntil: start.Add(time.Hour),
	}
}

func userKept(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	node := rbac.User{Name: "web-1.example.test", Kind: rbac.Node, CreatedAt: start}
	check(t, s.CreateUser(ctx, ann()))
	check(t, s.CreateUser(ctx, node))
	for _, want := range []rbac.User{ann(), node} {
		got, err := s.User(ctx, want.Name)
		check(t, err)
		same(t, "user", want, got)
	}
	wantKind(t, "the same name again", s.CreateUser(ctx, rbac.User{Name: "ann", Kind: rbac.Node}), fault.Conflict)
	check(t, s.DeleteUser(ctx, "ann"))
	wantKind(t, "delete twice", s.DeleteUser(ctx, "ann"), fault.NotFound)
	_, err := s.User(ctx, "ann")
	wantKind(t, "a deleted user", err, fault.NotFound)
}

func userChanged(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	check(t, s.CreateUser(ctx, ann()))
	want := ann()
	want.Roles, want.Disabled, want.Failures, want.LockedUntil, want.Password = []string{"viewer"}, false, 0, time.Time{}, "$other"
	got, err := s.ChangeUser(ctx, "ann", func(u *rbac.User) error {
		u.Roles, u.Disabled, u.Failures, u.LockedUntil, u.Password = []string{"viewer"}, false, 0, time.Time{}, "$other"
		return nil
	})
	check(t, err)
	same(t, "what is returned", want, got)
	refusal := errors.New("no")
	if _, err := s.ChangeUser(ctx, "ann", func(u *rbac.User) error { u.Disabled = true; return refusal }); !errors.Is(err, refusal) {
		t.Errorf("got %v, want the error of the change", err)
	}
	got, err = s.User(ctx, "ann")
	check(t, err)
	same(t, "what is stored", want, got)
	_, err = s.ChangeUser(ctx, "bob", func(*rbac.User) error { return nil })
	wantKind(t, "change an unknown user", err, fault.NotFound)
}

// userContended counts failures from several sides at once.
func userContended(t *testing.T, s rbac.Store) {
	check(t, s.CreateUser(t.Context(), rbac.User{Name: "ann", Kind: rbac.Person}))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				if _, err := s.ChangeUser(t.Context(), "ann", func(u *rbac.User) error { u.Failures++; return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	u, err := s.User(t.Context(), "ann")
	check(t, err)
	same(t, "failures", 20, u.Failures)
}

func userPages(t *testing.T, s rbac.Store) {
	for _, name := range []string{"cid", "ann", "bob"} {
		check(t, s.CreateUser(t.Context(), rbac.User{Name: name, Kind: rbac.Person}))
	}
	var pages []string
	for after := ""; ; {
		users, err := s.Users(t.Context(), rbac.Page{After: after, Limit: 2})
		check(t, err)
		var names []string
		for _, u := range users {
			names, after = append(names, u.Name), u.Name
		}
		pages = append(pages, strings.Join(names, " "))
		if len(users) < 2 {
			break
		}
	}
	same(t, "pages", []string{"ann bob", "cid"}, pages)
}

func webRole() rbac.Role {
	return rbac.Role{
		Name: "web", Description: "the web team", ChangedAt: start, ChangedBy: "admin",
		Grants: []fleet.Grant{
			{Permission: fleet.NodeRead, Nodes: `facts.role = "web"`},
			{Permission: fleet.CodeDeploy, Environments: []string{"web_*", "test"}, Tasks: []string{"service::*"}},
		},
	}
}

func roleKept(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	other := rbac.Role{Name: "db", Grants: []fleet.Grant{{Permission: fleet.NodeRead}}}
	check(t, s.CreateRole(ctx, webRole()))
	check(t, s.CreateRole(ctx, other))
	wantKind(t, "the same name again", s.CreateRole(ctx, webRole()), fault.Conflict)
	got, err := s.Role(ctx, "web")
	check(t, err)
	same(t, "role", webRole(), got)
	changed := rbac.Role{Name: "web", Grants: []fleet.Grant{{Permission: fleet.CodeRead}}, ChangedAt: start.Add(time.Hour), ChangedBy: "ann"}
	check(t, s.ReplaceRole(ctx, changed))
	roles, err := s.Roles(ctx)
	check(t, err)
	same(t, "roles", []rbac.Role{other, changed}, roles)
	wantKind(t, "replace an unknown role", s.ReplaceRole(ctx, rbac.Role{Name: "x"}), fault.NotFound)
	check(t, s.DeleteRole(ctx, "web"))
	wantKind(t, "delete twice", s.DeleteRole(ctx, "web"), fault.NotFound)
	_, err = s.Role(ctx, "web")
	wantKind(t, "a deleted role", err, fault.NotFound)
}

func roleInUse(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	check(t, s.CreateRole(ctx, webRole()))
	check(t, s.CreateUser(ctx, rbac.User{Name: "ann", Kind: rbac.Person, Roles: []string{"viewer", "web"}}))
	check(t, s.CreateUser(ctx, rbac.User{Name: "bob", Kind: rbac.Person, Roles: []string{"webs"}}))
	refused := func(who string) {
		t.Helper()
		err := s.DeleteRole(ctx, "web")
		wantKind(t, "delete a role of "+who, err, fault.Conflict)
		if !strings.Contains(fault.Detail(err), who) {
			t.Errorf("%q does not name %s", fault.Detail(err), who)
		}
	}
	refused("ann")
	_, err := s.ChangeUser(ctx, "ann", func(u *rbac.User) error { u.Roles = nil; return nil })
	check(t, err)
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t1", Hash: "h1", Owner: "bob", Roles: []string{"web"}, Narrowed: true}))
	refused("bob")
	_, err = s.RevokeToken(ctx, "bob", "t1")
	check(t, err)
	check(t, s.DeleteRole(ctx, "web"))
}

func hash(n int) fleet.Digest { return fleet.DigestOf(fmt.Append(nil, n)) }

func tokenFound(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	user := rbac.User{Name: "ann", Kind: rbac.Person, Roles: []string{"viewer", "web"}, CreatedAt: start}
	unused := rbac.Role{Name: "db", Grants: []fleet.Grant{{Permission: fleet.NodeRead}}}
	narrow := rbac.Role{Name: "narrow", Grants: []fleet.Grant{{Permission: fleet.CodeRead}}}
	token := rbac.Token{
		ID: "t1", Hash: hash(1), Owner: "ann", Label: "ci", Roles: []string{"narrow"}, Narrowed: true,
		CreatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
	check(t, s.CreateUser(ctx, user))
	for _, r := range []rbac.Role{webRole(), unused, narrow} {
		check(t, s.CreateRole(ctx, r))
	}
	check(t, s.SaveAccessToken(ctx, token))
	got, err := s.Bearer(ctx, hash(1))
	check(t, err)
	same(t, "bearer", rbac.Bearer{Token: token, User: user, Roles: []rbac.Role{narrow, webRole()}}, got)
	_, err = s.Bearer(ctx, hash(2))
	wantKind(t, "an unknown token", err, fault.NotFound)
	check(t, s.DeleteUser(ctx, "ann"))
	_, err = s.Bearer(ctx, hash(1))
	wantKind(t, "a token of a deleted user", err, fault.NotFound)
}

func tokenLabels(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	check(t, s.CreateUser(ctx, rbac.User{Name: "ann", Kind: rbac.Person}))
	check(t, s.CreateUser(ctx, rbac.User{Name: "bob", Kind: rbac.Person}))
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t1", Hash: hash(1), Owner: "ann", Label: "ci"}))
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t2", Hash: hash(2), Owner: "ann"}))
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t3", Hash: hash(3), Owner: "ann"}))
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t4", Hash: hash(4), Owner: "bob", Label: "ci"}))
	wantKind(t, "the same label", s.SaveAccessToken(ctx, rbac.Token{ID: "t5", Hash: hash(5), Owner: "ann", Label: "ci"}), fault.Conflict)
	wantKind(t, "no such owner", s.SaveAccessToken(ctx, rbac.Token{ID: "t6", Hash: hash(6), Owner: "cid"}), fault.NotFound)
	for owner, want := range map[string]string{"ann": "t1 t2 t3 ", "bob": "t4 ", "": "t1 t2 t3 t4 ", "cid": ""} {
		tokens, err := s.Tokens(ctx, owner, rbac.Page{Limit: 10})
		check(t, err)
		same(t, "tokens of "+owner, want, ids(tokens))
	}
	tokens, err := s.Tokens(ctx, "ann", rbac.Page{After: "t1", Limit: 1})
	check(t, err)
	same(t, "a page", "t2 ", ids(tokens))
}

func ids(tokens []rbac.Token) (list string) {
	for _, token := range tokens {
		list += token.ID + " "
	}
	return list
}

func tokenRevoked(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	check(t, s.CreateUser(ctx, rbac.User{Name: "ann", Kind: rbac.Person}))
	check(t, s.CreateUser(ctx, rbac.User{Name: "bob", Kind: rbac.Person}))
	for i, token := range []rbac.Token{{Label: "ci"}, {Label: "t3"}, {}, {}, {}, {Label: "backup"}} {
		token.ID, token.Hash, token.Owner = fmt.Sprint("t", i+1), hash(i+1), "ann"
		check(t, s.SaveAccessToken(ctx, token))
	}
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t9", Hash: hash(9), Owner: "bob"}))
	for name, want := range map[string]string{"ci": "t1", "t3": "t3"} { // an id goes before a label
		got, err := s.RevokeToken(ctx, "ann", name)
		check(t, err)
		same(t, "revoked", want, got.ID)
	}
	for _, name := range []string{"ci", "", "t9"} {
		_, err := s.RevokeToken(ctx, "ann", name)
		wantKind(t, "revoke "+name, err, fault.NotFound)
	}
	left := func(want string) {
		t.Helper()
		tokens, err := s.Tokens(ctx, "", rbac.Page{Limit: 10})
		check(t, err)
		same(t, "left", want, ids(tokens))
	}
	left("t2 t4 t5 t6 t9 ")
	n, err := s.RevokeTokens(ctx, "ann", "t4", true)
	check(t, err)
	same(t, "logins revoked", 1, n)
	left("t2 t4 t6 t9 ")
	n, err = s.RevokeTokens(ctx, "ann", "", false)
	check(t, err)
	same(t, "tokens revoked", 3, n)
	left("t9 ")
}

func tokenTouched(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	check(t, s.CreateUser(ctx, rbac.User{Name: "ann", Kind: rbac.Person}))
	check(t, s.SaveAccessToken(ctx, rbac.Token{ID: "t1", Hash: hash(1), Owner: "ann"}))
	check(t, s.TouchTokens(ctx, map[string]time.Time{"t1": start, "gone": start}))
	check(t, s.TouchTokens(ctx, map[string]time.Time{"t1": start.Add(-time.Hour)})) // another server was slow
	b, err := s.Bearer(ctx, hash(1))
	check(t, err)
	same(t, "last use", start, b.Token.UsedAt)
}

func tokenPruned(t *testing.T, s rbac.Store) {
	ctx := t.Context()
	check(t, s.CreateUser(ctx, rbac.User{Name: "ann", Kind: rbac.Person}))
	for i, expires := range []time.Time{{}, start, start.Add(time.Hour)} {
		check(t, s.SaveAccessToken(ctx, rbac.Token{ID: fmt.Sprint("t", i), Hash: hash(i), Owner: "ann", ExpiresAt: expires}))
	}
	n, err := s.PruneTokens(ctx, start.Add(time.Minute))
	check(t, err)
	same(t, "pruned", 1, n)
	tokens, err := s.Tokens(ctx, "ann", rbac.Page{Limit: 10})
	check(t, err)
	same(t, "left", "t0 t2 ", ids(tokens))
}
