package lease

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Grant says that a holder got a lease.
type Grant struct {
	Name   string // of the lease: what the work is called
	Holder string
	Token  int64 // higher than that of each grant of this lease before
}

// Lease is a lease as it is now.
type Lease struct {
	Grant
	Since time.Time // when the holder got it
	Left  time.Duration
}

// Free tells whether anybody may get it.
func (l Lease) Free() bool { return l.Left <= 0 }

// Near is how a server stands that is near its nodes and far from the records. It says so itself, when it reaches them.
type Near struct {
	CutAt       time.Time `json:"cut_at,omitzero"`  // when it could not reach them last; zero: it always could
	BackAt      time.Time `json:"back_at,omitzero"` // when it could again
	Queued      int       `json:"queued"`           // what nodes sent meanwhile and is not delivered
	QueuedBytes int64     `json:"queued_bytes"`
	Aside       int       `json:"set_aside"`     // what the records refused for good
	Kept        int       `json:"kept_catalogs"` // nodes whose catalog is kept there
	Served      int64     `json:"served_kept"`   // kept catalogs that were given, since its start
	Delivered   int64     `json:"delivered"`     // pieces that were delivered, since its start
}

// Store keeps leases. Each method is one transaction and may be called concurrently, also from several processes. Times are
// those of the store's own clock.
type Store interface {
	// AcquireLease gives a lease for some time, unless somebody else has it; ok tells. What the holder has already it gets
	// again, with the next token. It waits for writes of the holder before that are under way. A lease that would last more than
	// twice as long is nobody's: a clock gave it that was ahead, and who has it renews it by the right one, if it is alive.
	AcquireLease(ctx context.Context, name, holder string, ttl time.Duration) (g Grant, ok bool, err error)
	// RenewLeases makes grants last for some time from now on, and returns those that it could not: they are over, released, or
	// somebody else has the lease. It waits for nobody's writes.
	RenewLeases(ctx context.Context, grants []Grant, ttl time.Duration) (lost []Grant, err error)
	// ReleaseLease ends a grant. One that has ended is no error.
	ReleaseLease(ctx context.Context, g Grant) error
	// Leases lists all that were ever held, by name.
	Leases(ctx context.Context) ([]Lease, error)
}

// Fence is the grant under which something is written. A store whose writes carry one (see With) checks first, in the same
// transaction, that the lease was given to nobody since, and keeps others from getting it until the transaction has ended.
type Fence struct {
	Grant
	lose func()
}

type fenceKey struct{}

// With makes all that is written with ctx part of a grant. It goes along with the context, and not through the ports of each
// area, so that no write of a work can be without. lose is told when a write was refused; it must not block, and may be nil.
func With(ctx context.Context, g Grant, lose func()) context.Context {
	return context.WithValue(ctx, fenceKey{}, Fence{g, lose})
}

// From is the fence of what is written with ctx, if there is one.
func From(ctx context.Context) (Fence, bool) {
	f, ok := ctx.Value(fenceKey{}).(Fence)
	return f, ok
}

// Refuse tells the holder that its lease has gone, and returns what its write ends with.
func (f Fence) Refuse() error {
	if f.lose != nil {
		f.lose()
	}
	return fault.New(fault.Unavailable, "this server has lost the lease %q: another server goes on with it; see `tutti cluster status`", f.Name)
}
