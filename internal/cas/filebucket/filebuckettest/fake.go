// Package filebuckettest holds what every bucket store must do, as a suite, and a
// store in memory that does it.
package filebuckettest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Fake is a filebucket.Store in memory.
type Fake struct {
	mu   sync.Mutex
	rows []filebucket.Backup
}

// New returns an empty Fake.
func New() *Fake { return &Fake{} }

// SaveBackup implements filebucket.Store.
func (s *Fake) SaveBackup(_ context.Context, b filebucket.Backup, quota filebucket.Quota) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := slices.IndexFunc(s.rows, func(o filebucket.Backup) bool {
		return o.Algorithm == b.Algorithm && o.Sum == b.Sum && o.Node == b.Node && o.Path == b.Path
	})
	switch {
	case known < 0:
		more := b.Size
		if slices.ContainsFunc(s.rows, func(o filebucket.Backup) bool { return o.Node == b.Node && o.Blob == b.Blob }) {
			more = 0
		}
		if err := quota.Admit(b.Node, s.use(b.Node), more); err != nil {
			return err
		}
		s.rows = append(s.rows, b)
	case b.At.After(s.rows[known].At):
		s.rows[known].At = b.At
	}
	return nil
}

func (s *Fake) use(node fleet.Certname) (use filebucket.Use) {
	seen := map[fleet.Digest]bool{}
	for _, b := range s.rows {
		if b.Node != node {
			continue
		}
		use.Files++
		if !seen[b.Blob] {
			seen[b.Blob] = true
			use.Bytes += b.Size
		}
	}
	return use
}

// BackupUse implements filebucket.Store.
func (s *Fake) BackupUse(_ context.Context, node fleet.Certname) (filebucket.Use, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.use(node), nil
}

// Blob implements filebucket.Store.
func (s *Fake) Blob(_ context.Context, node fleet.Certname, algorithm, sum string) (fleet.Digest, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.rows {
		if b.Algorithm == algorithm && b.Sum == sum && (node == "" || b.Node == node) {
			return b.Blob, b.Size, nil
		}
	}
	return "", 0, fault.New(fault.NotFound, "nothing was backed up under {%s}%s", algorithm, sum)
}

// Backups implements filebucket.Store.
func (s *Fake) Backups(_ context.Context, node fleet.Certname, from, to time.Time, limit int) ([]filebucket.Backup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []filebucket.Backup
	for _, b := range s.rows {
		if b.Node == node && (from.IsZero() || !b.At.Before(from)) && (to.IsZero() || !b.At.After(to)) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b filebucket.Backup) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Path, b.Path))
	})
	return out[:min(limit, len(out))], nil
}

// Blobs implements filebucket.Store.
func (s *Fake) Blobs(context.Context) ([]fleet.Digest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []fleet.Digest
	for _, b := range s.rows {
		out = append(out, b.Blob)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// PruneBackups implements filebucket.Store.
func (s *Fake) PruneBackups(_ context.Context, before time.Time) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := len(s.rows)
	s.rows = slices.DeleteFunc(s.rows, func(b filebucket.Backup) bool { return b.At.Before(before) })
	return all - len(s.rows), nil
}
