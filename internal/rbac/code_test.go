package rbac_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
)

// A code logs in once, within its minute, as its owner, and to no more than the token that asked for it could do.
func TestACodeLogsInOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := open(t)
		create(t, a, "ann", "viewer", "operator")
		ctx := t.Context()
		narrow, err := login(t, a, "ann", password, "viewer")
		check(t, err)
		asking, err := a.Bearer(ctx, narrow.Text)
		check(t, err)
		code, err := a.NewCode(ctx, asking)
		check(t, err)
		issued, err := a.Redeem(ctx, code.Text, 0)
		check(t, err)
		actor, err := a.Bearer(ctx, issued.Text)
		check(t, err)
		if actor.Name != "ann" || !actor.Narrowed || rbac.Allow(actor, fleet.NodeRead, fleet.Object{}) != nil ||
			rbac.Allow(actor, fleet.PuppetRun, fleet.Object{}) == nil {
			t.Errorf("the code of a narrow token gave %+v", actor)
		}
		_, err = a.Redeem(ctx, code.Text, 0)
		wantKind(t, "a code that was used", err, fault.Denied)
		_, err = a.Redeem(ctx, "tutti_never-was-one-of-ours", 0)
		wantKind(t, "a code of nobody", err, fault.Denied)

		late, err := a.NewCode(ctx, asking)
		check(t, err)
		<-time.After(rbac.CodeLife)
		_, err = a.Redeem(ctx, late.Text, 0)
		wantKind(t, "a code that is a minute old", err, fault.Denied)

		gone, err := a.NewCode(ctx, asking)
		check(t, err)
		_, err = a.Store.ChangeUser(ctx, "ann", func(u *rbac.User) error { u.Disabled = true; return nil })
		check(t, err)
		_, err = a.Redeem(ctx, gone.Text, 0)
		wantKind(t, "the code of a user who was disabled", err, fault.Denied)

		_, err = a.NewCode(ctx, fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"})
		wantKind(t, "the code of a node", err, fault.Denied)
	})
}
