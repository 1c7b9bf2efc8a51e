package blobdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestFillVerifiesWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := open(t, dir)
	d := put(t, before, "original")
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir) // knows nothing yet
	buf := make([]byte, 100)
	for range 2 { // through Open, then without
		n, err := s.Fill(t.Context(), d, buf)
		if err != nil || string(buf[:n]) != "original" {
			t.Errorf("got %q, %v", buf[:n], err)
		}
	}
	if _, known, err := s.fillKnown(d, buf); !known || err != nil {
		t.Errorf("the blob is still unknown, %v", err)
	}
}

func TestFillRefusesCorruptBlobs(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]string{"same size": "tampered", "shorter": "x", "longer": "original and more", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, t.TempDir())
			d := put(t, s, "original")
			overwrite(t, s.path(d), wrong)
			_, err := s.Fill(t.Context(), d, make([]byte, 100))
			if !errors.Is(err, cas.ErrCorrupt) || fault.Of(err) != fault.Internal {
				t.Fatalf("got %v, want ErrCorrupt", err)
			}
			if _, err := os.Stat(filepath.Join(s.dir, "corrupt", string(d))); err != nil {
				t.Error(err)
			}
			_, err = s.Fill(t.Context(), d, make([]byte, 100))
			wantKind(t, err, fault.NotFound)
		})
	}
}

func BenchmarkSmall(b *testing.B) {
	s := open(b, b.TempDir())
	d := put(b, s, string(make([]byte, 10_000)))
	buf := make([]byte, 64<<10)
	b.Run("fill", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Fill(b.Context(), d, buf); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			openAndRead(b, s, d, buf)
		}
	})
}

func openAndRead(b *testing.B, s *Store, d fleet.Digest, buf []byte) {
	b.Helper()
	blob, err := s.Open(b.Context(), d)
	if err != nil {
		b.Fatal(err)
	}
	for err == nil {
		_, err = blob.Read(buf)
	}
	_ = blob.Close()
}
