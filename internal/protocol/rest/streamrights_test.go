package rest_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/rbac"
)

// change is something that takes a right from a caller.
type change struct {
	name, caller string
	do           func(ctx context.Context, b bench) error
}

func changes() []change {
	edit := func(name string, to func(*rbac.User)) func(context.Context, bench) error {
		return func(ctx context.Context, b bench) error {
			_, err := b.store.ChangeUser(ctx, name, func(u *rbac.User) error { to(u); return nil })
			return err
		}
	}
	return []change{
		{"deleted", "operator", func(ctx context.Context, b bench) error { return b.store.DeleteUser(ctx, "operator") }},
		{"disabled", "operator", edit("operator", func(u *rbac.User) { u.Disabled = true })},
		{"without its role", "operator", edit("operator", func(u *rbac.User) { u.Roles = nil })},
		{"in a smaller role", "operator", edit("operator", func(u *rbac.User) { u.Roles = []string{"viewer"} })},
		{"revoked", "operator", func(ctx context.Context, b bench) error {
			_, err := b.store.RevokeTokens(ctx, "operator", "", false)
			return err
		}},
		{"a role that is narrowed", "web team", func(ctx context.Context, b bench) error {
			return b.store.ReplaceRole(ctx, rbac.Role{Name: "web", Grants: []fleet.Grant{{Permission: fleet.NodeRead, Nodes: webCondition}}})
		}},
		{"a certificate without its role", "node+role", edit("ci.example.test", func(u *rbac.User) { u.Roles = nil })},
	}
}

// Each stream of who may not see it any more ends within a second, also of who may see less than before.
func TestStreamsEndWithTheRight(t *testing.T) {
	t.Parallel()
	for _, c := range changes() {
		for _, stream := range []string{"jobs", "events", "previews"} {
			if c.caller != "operator" && stream != "events" { // those are somebody else's
				continue
			}
			t.Run(c.name+" "+stream, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := jobBench(t)
					path := "/events"
					switch stream {
					case "jobs":
						_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
						path = "/jobs/1/events"
					case "previews":
						shares := []preview.Share{{Number: 0, Node: "a", State: preview.Waiting}}
						row := preview.Preview{Environment: "production", State: preview.Compiling, Counts: preview.Count(shares)}
						p, err := b.preview.CreatePreview(t.Context(), row, shares)
						check(t, err)
						path = fmt.Sprintf("/previews/%d/events", p.ID)
					}
					const after = 5*time.Second + 300*time.Millisecond
					time.AfterFunc(after, func() { check(t, c.do(t.Context(), b)) })
					begun := time.Now()
					w := b.call(caller(t, c.caller), http.MethodGet, api.Prefix+path, nil)
					if took := time.Since(begun); w.Code != http.StatusOK || took < after || took > after+time.Second {
						t.Errorf("%d: the stream ended after %s: %s", w.Code, took, w.Body)
					}
				})
			})
		}
	}
}
