package target

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// CertificateEnds knows whose certificates are all revoked or expired.
type CertificateEnds interface {
	Ended(ctx context.Context, names []fleet.Certname, now time.Time) (map[fleet.Certname]pki.Ended, error)
}

// LockedOut is job.Certificates.
type LockedOut struct{ Certificates CertificateEnds }

// Ended implements job.Certificates.
func (l LockedOut) Ended(ctx context.Context, nodes []fleet.Certname) (map[fleet.Certname]string, error) {
	ended, err := l.Certificates.Ended(ctx, nodes, time.Now())
	told := make(map[fleet.Certname]string, len(ended))
	for name, e := range ended {
		told[name] = e.Told(name)
	}
	return told, err
}
