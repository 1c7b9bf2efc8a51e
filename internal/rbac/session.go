package rbac

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Logins are logins that the audit log keeps, for each protocol by which somebody can log in.
type Logins struct {
	Access *Access
	Audit  *Audit
}

// Knock counts a try from the address of an entry before it is read who tries: whoever sends many bodies is refused without them.
func (l Logins) Knock(ctx context.Context, entry Entry) error {
	err := l.Access.Knock(entry.Remote)
	if err != nil {
		entry.ActorKind, entry.Actor, entry.Token = fleet.Anonymous, "", ""
		l.Audit.Refused(ctx, entry, err)
	}
	return err
}

// Open logs somebody in. The actor of the record is who the password proves; strangers' failures are bounded.
func (l Logins) Open(ctx context.Context, entry Entry, try Attempt) (Issued, error) {
	entry.Actor, entry.Object = try.Name, try.Name // as claimed; the kind says whether it is proven
	issued, err := l.prove(ctx, try)
	if err != nil {
		entry.ActorKind, entry.Token = fleet.Anonymous, ""
		l.Audit.Refused(ctx, entry, err)
		return Issued{}, err
	}
	entry.ActorKind, entry.Actor, entry.Object, entry.Token = fleet.UserActor, issued.Owner, issued.Owner, issued.ID
	finish, err := l.Audit.Begin(ctx, entry)
	if err != nil { // nobody is told the token, so nobody has it
		return Issued{}, err
	}
	finish(nil)
	return issued, nil
}
