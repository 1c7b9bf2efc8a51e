package blobs3_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/blobdir"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// BenchmarkBlobs has the same done by a directory, by an S3 store on this machine with its cache, and by that without a cache.
func BenchmarkBlobs(b *testing.B) {
	server := blobs3test.Start(b)
	stores := map[string]func(b *testing.B) cas.Store{
		"directory": func(b *testing.B) cas.Store {
			b.Helper()
			s, err := blobdir.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Close() })
			return s
		},
		"s3": func(b *testing.B) cas.Store {
			b.Helper()
			return open(b, server.Config("cached"), cas.NewMarks(), openCache(b, 1<<30))
		},
		"s3-no-cache": func(b *testing.B) cas.Store {
			b.Helper()
			return open(b, server.Config("bare"), cas.NewMarks(), openCache(b, 0))
		},
	}
	for _, name := range []string{"directory", "s3", "s3-no-cache"} {
		for _, size := range []int{10_000, 40_000_000} {
			b.Run(fmt.Sprintf("%s/put-%d", name, size), func(b *testing.B) { benchmarkPut(b, stores[name](b), size) })
			b.Run(fmt.Sprintf("%s/read-%d", name, size), func(b *testing.B) { benchmarkRead(b, stores[name](b), size) })
		}
	}
}

func benchmarkPut(b *testing.B, s cas.Store, size int) {
	b.Helper()
	b.SetBytes(int64(size))
	content := random(size)
	for i := uint64(0); b.Loop(); i++ {
		binary.LittleEndian.PutUint64(content, i)
		if _, _, err := s.Put(b.Context(), bytes.NewReader(content)); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkRead(b *testing.B, s cas.Store, size int) {
	b.Helper()
	b.SetBytes(int64(size))
	d := put(b, s, string(random(size)))
	for b.Loop() {
		readAll(b, s, d)
	}
}

func readAll(b *testing.B, s cas.Store, d fleet.Digest) {
	b.Helper()
	blob, err := s.Open(b.Context(), d)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = blob.Close() }()
	if _, err := io.Copy(io.Discard, blob); err != nil {
		b.Fatal(err)
	}
}
