package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// content is what is downloaded.
type content struct {
	name   string // for people
	sha256 string
	uri    pxp.Source
}

// download puts a content at a path, all at once.
func (c *Cache) download(ctx context.Context, what content, path string) error {
	if len(c.cfg.Servers) == 0 {
		return fault.New(fault.Unavailable, "Cannot download file. No master-uris were provided")
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return c.broken(err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its name by then, or is not wanted
	err = c.rounds(ctx, what, f)
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), mode); err != nil {
		return c.broken(err)
	}
	return c.broken(os.Rename(f.Name(), path))
}

// rounds asks all servers, until one gives the content, or often enough.
func (c *Cache) rounds(ctx context.Context, what content, to *os.File) error {
	waits := c.pauses
	for {
		err := c.round(ctx, what, to)
		if err == nil || final(err) {
			return err
		}
		if len(waits) == 0 {
			return fault.Wrap(fault.Unavailable, err, "Failed to download file with: %v", err)
		}
		c.cfg.Log.WarnContext(ctx, "file not downloaded, will retry", "file", what.name, "sha256", what.sha256, "err", err)
		timer := time.NewTimer(waits[0])
		waits = waits[1:]
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// final errors are those that asking again does not mend; they are faults already.
func final(err error) bool {
	return fault.Of(err) != fault.Internal || errors.Is(err, context.Canceled)
}

// round asks each server once; its error is of all of them.
func (c *Cache) round(ctx context.Context, what content, to *os.File) error {
	var all []string
	for _, server := range c.cfg.Servers {
		err := c.try(ctx, server, what, to)
		if err == nil || final(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		all = append(all, err.Error())
	}
	return errors.New(strings.Join(all, "; "))
}

// try downloads from one server.
func (c *Cache) try(ctx context.Context, server string, what content, to *os.File) error {
	if err := restart(to); err != nil {
		return c.broken(err)
	}
	address, err := addressOf(server, what.uri)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.MaxTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", server, response.Status)
	}
	return c.receive(response, what, to)
}

// restart empties a file for another try.
func restart(f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return f.Truncate(0)
}

// addressOf is a path below a server's address.
func addressOf(server string, uri pxp.Source) (string, error) {
	if !strings.HasPrefix(uri.Path, "/") {
		return "", fault.New(fault.Invalid, "the path %.200q does not begin with a slash", uri.Path)
	}
	u, err := url.Parse(strings.TrimSuffix(server, "/") + uri.Path)
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "the path %.200q is none of a URI", uri.Path)
	}
	query := u.Query()
	for name, value := range uri.Params {
		query.Set(name, value)
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	return u.String(), nil
}

// receive writes a response to a file, and checks that it is what was announced.
func (c *Cache) receive(response *http.Response, what content, to *os.File) error {
	tooLong := fault.New(fault.Invalid, "The file %q is too big: at most %d bytes are downloaded", what.name, c.cfg.MaxBytes)
	if response.ContentLength > c.cfg.MaxBytes {
		return tooLong
	}
	sum, disk := sha256.New(), &diskWriter{f: to}
	n, err := io.Copy(io.MultiWriter(disk, sum), io.LimitReader(response.Body, c.cfg.MaxBytes+1))
	switch {
	case disk.err != nil:
		return c.broken(disk.err)
	case err != nil:
		return err
	case n > c.cfg.MaxBytes:
		return tooLong
	case hex.EncodeToString(sum.Sum(nil)) != what.sha256:
		return fault.New(fault.Invalid, "The downloaded file %q has a SHA that differs from the provided SHA", what.name)
	}
	return c.broken(to.Sync())
}

// diskWriter remembers errors of the disk, which no other server can mend.
type diskWriter struct {
	f   *os.File
	err error
}

func (d *diskWriter) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	d.err = err
	return n, err
}
