package puppet

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/filebucket"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxDiffed bounds each side of a difference.
const maxDiffed = 8 * mebibyte

// difference answers with the lines that differ between two backups, the way
// diff -u writes them; with nothing when they are equal.
func (k *backups) difference(c *call, key backupKey, digest fleet.Digest, other string) error {
	if err := checkSum(key.algorithm, other); err != nil {
		return err
	}
	otherDigest, _, err := k.backedUp(c, key.algorithm, other)
	if isNotFound(err) {
		return problemf(http.StatusNotFound, resourceNotFound, "could not find diff_with %s", other)
	}
	if err != nil {
		return err
	}
	a, err := k.side(c, digest)
	if err != nil {
		return err
	}
	b, err := k.side(c, otherDigest)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", formatBinary.contentType)
	return c.whole(unified(key.sum, a, other, b))
}

func (k *backups) side(c *call, digest fleet.Digest) ([]byte, error) {
	blob, err := k.blobs.store.Open(c.ctx(), digest)
	if err != nil {
		return nil, err
	}
	size := blob.Size()
	if err := blob.Close(); err != nil {
		return nil, err
	}
	if size > maxDiffed {
		return nil, badRequest("a backup of %d bytes is too large to compare, at most %d are allowed", size, maxDiffed)
	}
	return cas.Bytes(c.ctx(), k.blobs.store, digest, maxDiffed)
}

// unified writes a difference down. Content that is no text is only said to
// differ.
func unified(oldName string, a []byte, newName string, b []byte) []byte {
	if bytes.Equal(a, b) {
		return nil
	}
	if bytes.IndexByte(a, 0) >= 0 || bytes.IndexByte(b, 0) >= 0 {
		return fmt.Appendf(nil, "Binary files %s and %s differ\n", oldName, newName)
	}
	text := diff.Diff(oldName, a, newName, b)
	_, text, _ = bytes.Cut(text, []byte{'\n'}) // the command line above the difference
	return text
}

// listing writes backups down for people, a line each.
func listing(all []filebucket.Backup, algorithm string) []byte {
	slices.SortFunc(all, func(a, b filebucket.Backup) int {
		if order := strings.Compare(a.Path, b.Path); order != 0 {
			return order
		}
		return a.At.Compare(b.At)
	})
	var out bytes.Buffer
	for _, b := range all {
		if b.Algorithm == algorithm {
			fmt.Fprintf(&out, "%s %s %s\n", b.Sum, b.At.UTC().Format(time.DateTime), printable(b.Path))
		}
	}
	return out.Bytes()
}
