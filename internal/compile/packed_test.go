package compile_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// shelf is documents, and how often each was read.
type shelf struct {
	documents map[fleet.Digest][]byte
	reads     int
}

func (s *shelf) SaveDocument(_ context.Context, document []byte) (fleet.Digest, error) {
	digest := fleet.DigestOf(document)
	s.documents[digest] = document
	return digest, nil
}

func (s *shelf) Document(_ context.Context, d fleet.Digest) ([]byte, error) {
	s.reads++
	document, ok := s.documents[d]
	if !ok {
		return nil, fault.New(fault.NotFound, "no document %s", d)
	}
	return document, nil
}

// add makes a document with so many resources.
func (s *shelf) add(t *testing.T, resources int, more string) fleet.Digest {
	t.Helper()
	var list []string
	for n := range resources {
		list = append(list, fmt.Sprintf(`{"type":"File","title":"/srv/%d","parameters":{"content":"%x"%s}}`, n, rand.Uint64(), more))
	}
	document, digest, err := catalog.Normalise([]byte(
		`{"name":"n","metadata":{"/srv/1":{"checksum":"x"}},"resources":[`+strings.Join(list, ",")+`],"tags":[]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.documents[digest] = document
	return digest
}

// unpack reads the first gzip member and fails if there is anything else.
func unpack(t *testing.T, packed []byte) string {
	t.Helper()
	in := bytes.NewReader(packed)
	r, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false)
	text, err := io.ReadAll(r)
	if err != nil || in.Len() != 0 {
		t.Fatalf("%v; %d bytes are left", err, in.Len())
	}
	return string(text)
}

func TestPackedIsRendered(t *testing.T) {
	t.Parallel()
	s := &shelf{documents: map[fleet.Digest][]byte{}}
	packs := compile.NewPacks(s, 1<<20)
	for _, resources := range []int{0, 1, 2, 77, 3000} {
		for _, more := range []string{"", `,"x":{"__ptype":"Sensitive","__pvalue":1}`} {
			digest := s.add(t, resources, more)
			for _, stamp := range []catalog.Stamp{
				{},
				{Static: true},
				{Version: fleet.DigestOf([]byte("v")), UUID: "u-1", Static: true},
				{Version: fleet.DigestOf([]byte("w")), UUID: strings.Repeat("u", 300)},
			} {
				want, err := catalog.Render(s.documents[digest], stamp)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					packed, rich, err := packs.Packed(t.Context(), digest, stamp)
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(string(want), unpack(t, packed)); diff != "" {
						t.Fatalf("%d resources (-want +got):\n%s", resources, diff)
					}
					if rich != catalog.Rich(want) {
						t.Errorf("%d resources%s: rich is %t", resources, more, rich)
					}
				}
			}
		}
	}
	if want := 5 * 2 * 2; s.reads > want {
		t.Errorf("documents were read %d times, not %d", s.reads, want)
	}
}

func TestPacksRememberSoMuch(t *testing.T) {
	t.Parallel()
	s := &shelf{documents: map[fleet.Digest][]byte{}}
	packs := compile.NewPacks(s, 100_000)
	var digests []fleet.Digest
	for range 100 { // of about 2 KB each
		digests = append(digests, s.add(t, 100, ""))
	}
	large := s.add(t, 5000, "")
	for _, digest := range append(digests, large, large, digests[99], digests[99]) {
		if _, _, err := packs.Packed(t.Context(), digest, catalog.Stamp{}); err != nil {
			t.Fatal(err)
		}
	}
	if s.reads < 102 || s.reads > 103 { // the large one twice
		t.Errorf("%d documents were read", s.reads)
	}
	if _, _, err := packs.Packed(t.Context(), fleet.DigestOf(nil), catalog.Stamp{}); fault.Of(err) != fault.NotFound {
		t.Errorf("a document that is not there: %v", err)
	}
}

func BenchmarkPacked(b *testing.B) {
	s := &shelf{documents: map[fleet.Digest][]byte{}}
	digest := s.add(&testing.T{}, 500, "")
	packs := compile.NewPacks(s, 1<<20)
	for b.Loop() {
		if _, _, err := packs.Packed(b.Context(), digest, catalog.Stamp{UUID: "u"}); err != nil {
			b.Fatal(err)
		}
	}
}
