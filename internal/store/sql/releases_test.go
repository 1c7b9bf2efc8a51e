package sql

import (
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
	"github.com/tutti-project/tutti/internal/preview/previewtest"
	"github.com/tutti-project/tutti/internal/release"
)

// A release may wait for longer than previews are kept: its preview stays until it has ended.
func TestPreviewsOfOpenReleasesStay(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s, ctx := open(t), t.Context()
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		p, err := s.Previews.CreatePreview(ctx, preview.Preview{
			Environment: "production", Version: fleet.DigestOf(nil),
			State: preview.Compiling, CreatedAt: now,
		}, nil)
		ok(err)
		_, err = s.Previews.FinishPreview(ctx, preview.Preview{ID: p.ID, EndedAt: now}, previewtest.Groups())
		ok(err)
		r, err := s.Releases.CreateRelease(ctx, release.Release{Kind: release.Forward, Preview: p.ID, State: release.WaitingApproval, CreatedAt: now}, nil, nil)
		ok(err)
		later := now.AddDate(1, 0, 0)
		if n, err := s.Previews.PrunePreviews(ctx, later); n != 0 || err != nil {
			t.Errorf("%d previews of an open release are forgotten, %v", n, err)
		}
		r.State, r.EndedAt = release.Aborted, now
		_, err = s.Releases.SaveRelease(ctx, release.Change{Base: r.Revision, Release: r})
		ok(err)
		if n, err := s.Previews.PrunePreviews(ctx, later); n != 1 || err != nil {
			t.Errorf("%d previews are forgotten when the release has ended, %v; want 1", n, err)
		}
		if _, err := s.Previews.Preview(ctx, p.ID); fault.Of(err) != fault.NotFound {
			t.Errorf("the preview: %v", err)
		}
	})
}
