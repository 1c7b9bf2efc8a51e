package node

import (
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tutti-project/tutti/internal/fault"
)

var unpackers sync.Pool

// readBody reads a JSON body, compressed or not, of at most limit bytes as sent, and
// as many unpacked.
func readBody(r *http.Request, limit int64) (string, error) {
	if !jsonType(r) {
		return "", fault.New(fault.Invalid, "the header Content-Type must be application/json, not %.100q", r.Header.Get("Content-Type"))
	}
	if r.ContentLength > limit {
		return "", tooLarge(limit)
	}
	var from io.Reader = &io.LimitedReader{R: r.Body, N: limit + 1}
	switch coding := strings.ToLower(r.Header.Get("Content-Encoding")); coding {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, done, err := unpack(from)
		if err != nil {
			return "", broken(err)
		}
		defer done()
		from = unpacked
	default:
		return "", fault.New(fault.Invalid, "the header Content-Encoding must be gzip, or left out, not %.40q", coding)
	}
	var text strings.Builder
	if n := r.ContentLength; n > 0 {
		text.Grow(int(min(4*n, 1<<20))) // trust the header up to a point
	}
	n, err := io.Copy(&text, io.LimitReader(from, limit+1))
	switch {
	case n > limit:
		return "", tooLarge(limit)
	case err != nil:
		return "", broken(err)
	}
	return text.String(), nil
}

func unpack(from io.Reader) (unpacked io.Reader, done func(), err error) {
	z, ok := unpackers.Get().(*gzip.Reader)
	if ok {
		err = z.Reset(from)
	} else {
		z, err = gzip.NewReader(from)
	}
	return z, func() { unpackers.Put(z) }, err
}

func tooLarge(limit int64) error {
	return fault.New(fault.Invalid, "the facts are larger than the %d bytes that this server allows (max_facts_bytes)", limit)
}

func broken(err error) error {
	switch {
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return fault.Wrap(fault.Invalid, err, "the body is no well-formed gzip: %v", err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault.Wrap(fault.Invalid, err, "the body was cut off")
	}
	return fault.Wrap(fault.Invalid, err, "the body could not be read: %v", err)
}

// later says when to come back, spread over a while.
func later(format string, args ...any) error {
	after := soonest + rand.N(latest-soonest) //nolint:gosec // spreads load, guards nothing
	return fault.Later(after, format+", come back in %s", append(args, after.Round(time.Second))...)
}
