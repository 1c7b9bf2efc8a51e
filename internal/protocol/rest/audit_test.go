package rest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/rbac"
)

// acts are the entries of the audit log, oldest first, one line each.
func (b bench) acts(t *testing.T) (lines []string) {
	t.Helper()
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 100})
	check(t, err)
	for _, e := range entries {
		line := fmt.Sprintf("%s %s %s [%s] %s", e.ActorKind, e.Actor, e.Operation, e.Object, e.Outcome)
		lines = append([]string{line}, lines...)
		if e.Remote != "192.0.2.7" || e.RequestID != "req-1" || e.At.IsZero() {
			t.Errorf("where from, when, which request? %+v", e)
		}
	}
	return lines
}

func TestActsAndRefusalsAreRecorded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	foreign := b.seed(t, "db-1", "other")
	for _, c := range []struct{ caller, method, path, body string }{
		{"admin", "GET", "/nodes", ""},                               // a question
		{"admin", "POST", "/query", `{"query":"nodes[certname]{}"}`}, // another
		{"admin", "DELETE", "/nodes/web-1", ""},
		{"admin", "DELETE", "/nodes/web-1", ""},
		{"viewer", "DELETE", "/nodes/db-1", ""},
		{"anonymous", "GET", "/nodes", ""},
		{"wrong token", "GET", "/nodes", ""},
		{"admin", "POST", "/users", `{"name":"ann","password":"correct horse battery"}`},
		{"people", "POST", "/users", `{"name":"eve","roles":["administrator"]}`},
		{"admin", "POST", "/session", `{"name":"ann","password":"wrong and long enough"}`},
		{"admin", "POST", "/session", `{"name":"ann","password":"correct horse battery"}`},
		{"admin", "POST", "/tokens", `{"label":"ci"}`},
		{"admin", "POST", "/groups", `{"group":{"name":"Web servers"}}`},
		{"admin", "POST", "/releases", `{"preview":7,"description":"eight workers"}`},
		{"admin", "POST", "/tokens", `{"label":`}, // never begun
		{"web team", "GET", "/reports/" + foreign, ""},
	} {
		b.call(caller(t, c.caller), c.method, api.Prefix+c.path, []byte(c.body))
	}
	want := []string{
		"user admin node.purge [web-1] done",
		"user admin node.purge [web-1] failed",
		"user viewer node.purge [db-1] denied",
		"anonymous  node.list [] denied",
		"anonymous  node.list [] denied",
		"user admin user.create [ann] done",
		"user people user.create [eve] denied",
		"anonymous ann session.open [ann] denied",
		"user ann session.open [ann] done",
		"user admin token.create [ci] done",
		"user admin group.create [Web servers] done",
		"user admin release.create [preview 7] failed",
		"user web report.show [" + foreign + "] denied",
	}
	if diff := cmp.Diff(want, b.acts(t)); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	everything := fmt.Sprint(b.acts(t))
	w := b.call(admin, "GET", api.Prefix+"/audit?outcome=failing&actor=viewer", nil)
	if text := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(text, "does not have the permission node:purge") ||
		strings.Contains(text, "user.create") {
		t.Errorf("audit list: %d %s", w.Code, text)
	}
	for _, secret := range []string{"correct horse", "wrong and long", "tutti_secret"} {
		if strings.Contains(everything, secret) {
			t.Errorf("the audit log holds the secret %s", secret)
		}
	}
}

// fullLog is an audit log that cannot be written.
type fullLog struct{ rbac.AuditStore }

func (fullLog) RecordAct(context.Context, rbac.Entry) (int64, error) {
	return 0, errors.New("the disk is full")
}

func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	t.Parallel()
	b := newBenchWith(t, func(log rbac.AuditStore) rbac.AuditStore { return fullLog{log} })
	check(t, b.setPassword(t, "zed", "correct horse battery"))
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/nodes/web-1", ""},
		{"POST", "/session", `{"name":"zed","password":"correct horse battery"}`},
		{"POST", "/blobs", "no archive"},
	} {
		w := b.call(admin, c.method, api.Prefix+c.path, []byte(c.body))
		if w.Code < http.StatusInternalServerError || strings.Contains(w.Body.String(), "tutti_") {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
	if w := b.call(admin, "GET", api.Prefix+"/nodes/web-1", nil); w.Code != http.StatusOK {
		t.Errorf("the node is gone: %d %s", w.Code, w.Body)
	}
	if w := b.call(caller(t, "viewer"), "DELETE", api.Prefix+"/nodes/web-1", nil); w.Code != http.StatusForbidden {
		t.Errorf("a refusal that cannot be recorded is one all the same: %d", w.Code)
	}
}

func (b bench) setPassword(t *testing.T, name, password string) error {
	t.Helper()
	hash, err := b.access.Hasher.Hash(t.Context(), password)
	check(t, err)
	_, err = b.store.ChangeUser(t.Context(), name, func(u *rbac.User) error { u.Password = hash; return nil })
	return err
}

func TestAuditListChecksItsFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, query := range []string{"outcome=odd", "since=yesterday", "until=x", "after=x", "after=-1", "limit=1001"} {
		if w := b.call(admin, "GET", api.Prefix+"/audit?"+query, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	for range 3 {
		b.call(admin, "DELETE", api.Prefix+"/nodes/none", bytes.TrimSpace(nil))
	}
	if w := b.call(admin, "GET", api.Prefix+"/audit?limit=2&operation=node.*", nil); !strings.Contains(w.Body.String(), `"next":"2"`) {
		t.Errorf("paged: %s", w.Body)
	}
}

// What is done with the token of the data directory is marked, and that it asks something is recorded, once an hour.
func TestBreakGlassIsMarked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	glass := who{token: "glass"}
	hash, _ := rbac.HashOf(secret(glass.token))
	check(t, b.store.SaveAccessToken(t.Context(), rbac.Token{ID: "t-glass", Hash: hash, Owner: rbac.AdminUser, Label: rbac.AdminToken}))
	for range 2 {
		b.call(glass, "GET", api.Prefix+"/nodes", nil)
	}
	b.call(glass, "DELETE", api.Prefix+"/nodes/none", nil)
	b.call(admin, "DELETE", api.Prefix+"/nodes/none", nil)
	entries, err := b.store.Acts(t.Context(), rbac.EntryFilter{Limit: 10})
	check(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprintf("%s %s", e.Operation, e.Mark))
	}
	want := []string{"node.purge ", "node.purge break-glass", "token.break_glass break-glass"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if w := b.call(admin, "GET", api.Prefix+"/audit?operation=token.*", nil); !strings.Contains(w.Body.String(), `"mark":"break-glass"`) {
		t.Errorf("listed: %s", w.Body)
	}
}
