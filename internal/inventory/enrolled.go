package inventory

import (
	"context"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Enrolment is a node that only its certificate is known of: it has joined, and sent nothing yet.
type Enrolment struct {
	Certname fleet.Certname
	At       time.Time // when the certificate was issued
}

// EnrolmentStore knows the nodes that only their certificates are known of. A certificate counts that stands for its name, was not revoked,
// has not ended by now, and is no server's. A node that was purged is listed again only with another certificate.
type EnrolmentStore interface {
	// Enrolled lists them by name, at most limit: those after a name, and up to one, unless that is empty.
	Enrolled(ctx context.Context, after, until string, limit int, now time.Time) ([]Enrolment, error)
	// Enrolment is one of them; NotFound if the name is not among them.
	Enrolment(ctx context.Context, name fleet.Certname, now time.Time) (Enrolment, error)
}

// WithEnrolled is a NodeStore that has the nodes as well that only their certificates are known of.
type WithEnrolled struct {
	NodeStore
	Enrolments EnrolmentStore
}

// Node implements NodeStore.
func (w WithEnrolled) Node(ctx context.Context, name fleet.Certname) (Node, error) {
	n, err := w.NodeStore.Node(ctx, name)
	if err == nil || fault.Of(err) != fault.NotFound {
		return n, err
	}
	e, notEnrolled := w.Enrolments.Enrolment(ctx, name, time.Now())
	switch {
	case notEnrolled == nil:
		return e.node(), nil
	case fault.Of(notEnrolled) != fault.NotFound:
		return n, notEnrolled
	}
	return n, err
}

// Nodes implements NodeStore.
func (w WithEnrolled) Nodes(ctx context.Context, page Page) ([]Node, error) {
	stored, err := w.NodeStore.Nodes(ctx, page)
	if err != nil {
		return nil, err
	}
	until := ""
	if len(stored) == page.Limit {
		until = string(stored[len(stored)-1].Certname)
	}
	enrolled, err := w.Enrolments.Enrolled(ctx, page.After, until, page.Limit, time.Now())
	if err != nil {
		return nil, err
	}
	for _, e := range enrolled {
		if at, there := slices.BinarySearchFunc(stored, e.Certname, byCertname); !there {
			stored = slices.Insert(stored, at, e.node())
		}
	}
	return stored[:min(len(stored), page.Limit)], nil
}

func (e Enrolment) node() Node { return Node{Certname: e.Certname, CreatedAt: e.At, JoinedAt: e.At} }
