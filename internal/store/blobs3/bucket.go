package blobs3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tutti-project/tutti/internal/fault"
)

// bucket is objects below a prefix. Its errors are faults.
type bucket struct {
	core    minio.Core
	config  Config
	name    string
	prefix  string // ends in a slash, or is empty
	outage  outage
	timeout time.Duration
}

// tries is how often a request is sent at most.
const tries = 3

// partBytes is the size of a part of what is uploaded in parts; only what is larger is.
const partBytes = 16 << 20

// leastRate is how many bytes a second content must have, beside a minute.
const leastRate = 64 << 10

func openBucket(c Config) (*bucket, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	endpoint, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	secure, err := c.tls()
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: min(c.Timeout, 5*time.Second), KeepAlive: 15 * time.Second}
	lookup := minio.BucketLookupDNS
	if c.PathStyle {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds: credentials.New(&keys{file: c.CredentialsFile}), Secure: endpoint.Scheme == "https",
		Region: c.Region, BucketLookup: lookup, MaxRetries: tries,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &watched{Conn: conn, silence: c.Timeout}, nil
			},
			TLSClientConfig: secure, TLSHandshakeTimeout: c.Timeout, ExpectContinueTimeout: time.Second,
			MaxIdleConns: 64, MaxIdleConnsPerHost: 64, MaxConnsPerHost: 256, IdleConnTimeout: c.Timeout, DisableCompression: true,
		},
	})
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "the S3 store %s cannot be used so (%v)", c.Place, err)
	}
	b := &bucket{core: *core, config: c, timeout: c.Timeout}
	b.name, b.prefix = c.parts()
	if b.prefix != "" {
		b.prefix += "/"
	}
	return b, nil
}

// watched is a connection that ends when it is silent for too long, in both directions.
type watched struct {
	net.Conn
	silence time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	_ = w.SetDeadline(time.Now().Add(w.silence)) // also of a Write that waits: something happens
	return w.Conn.Read(p)
}

func (w *watched) Write(p []byte) (int, error) {
	_ = w.SetDeadline(time.Now().Add(w.silence))
	return w.Conn.Write(p)
}

// short gives a request without content its time.
func (b *bucket) short(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*b.timeout)
}

// long gives a request with content its time.
func long(ctx context.Context, size int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Minute+time.Duration(size/leastRate)*time.Second)
}

// ask sends a request, unless the store cannot be reached anyhow.
func (b *bucket) ask(ctx context.Context, request func() error) error {
	if err := b.outage.enter(); err != nil {
		return err
	}
	err := b.explain(ctx, request())
	b.outage.leave(ctx, err)
	return err
}

// put stores content under a name. Its digest, if known, lets the store look at what it got. r can be read again.
func (b *bucket) put(ctx context.Context, name, sha256 string, size int64, r io.ReadSeeker) error {
	ctx, cancel := long(ctx, size)
	defer cancel()
	return b.ask(ctx, func() error {
		options := minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: partBytes, NumThreads: 4}
		if size <= partBytes {
			_, err := b.core.PutObject(ctx, b.name, b.prefix+name, r, size, "", sha256, options)
			return err
		}
		_, err := b.core.Client.PutObject(ctx, b.name, b.prefix+name, r, size, options)
		return err
	})
}

// get opens an object from a byte on; NotFound. The caller closes it; its errors go through explain.
func (b *bucket) get(ctx context.Context, name string, from int64) (io.ReadCloser, int64, error) {
	reading, cancel := context.WithCancel(ctx)
	begins := time.AfterFunc(2*b.timeout, cancel)
	var body io.ReadCloser
	var info minio.ObjectInfo
	err := b.ask(ctx, func() (err error) {
		var options minio.GetObjectOptions
		if from > 0 {
			if err := options.SetRange(from, 0); err != nil {
				return err
			}
		}
		body, info, _, err = b.core.GetObject(reading, b.name, b.prefix+name, options)
		return err
	})
	if err != nil {
		cancel()
		return nil, 0, err
	}
	begins.Stop()
	return opened{body, cancel}, info.Size, nil
}

// opened is an object that is being read.
type opened struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (o opened) Close() error {
	o.cancel()
	return o.ReadCloser.Close()
}

// read reads a small object whole; NotFound.
func (b *bucket) read(ctx context.Context, name string, most int64) ([]byte, error) {
	ctx, cancel := b.short(ctx)
	defer cancel()
	body, _, err := b.get(ctx, name, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, most))
	return text, b.explain(ctx, err)
}

// stat tells size and time of an object; NotFound.
func (b *bucket) stat(ctx context.Context, name string) (size int64, at time.Time, err error) {
	ctx, cancel := b.short(ctx)
	defer cancel()
	err = b.ask(ctx, func() error {
		info, err := b.core.StatObject(ctx, b.name, b.prefix+name, minio.StatObjectOptions{})
		size, at = info.Size, info.LastModified
		return err
	})
	return size, at, err
}

// remove removes objects; those that are not there are none.
func (b *bucket) remove(ctx context.Context, names ...string) error {
	ctx, cancel := b.short(ctx)
	defer cancel()
	return b.ask(ctx, func() error {
		if len(names) == 1 {
			return b.core.RemoveObject(ctx, b.name, b.prefix+names[0], minio.RemoveObjectOptions{})
		}
		results, err := b.core.RemoveObjectsWithIter(ctx, b.name, func(yield func(minio.ObjectInfo) bool) {
			for _, name := range names {
				if !yield(minio.ObjectInfo{Key: b.prefix + name}) {
					return
				}
			}
		}, minio.RemoveObjectsOptions{})
		if err != nil {
			return err
		}
		for result := range results {
			err = errors.Join(err, result.Err)
		}
		return errors.Join(err, ctx.Err()) // the results just end with ctx, and the rest was not removed
	})
}

// object is one of a list.
type object struct {
	name string
	size int64
	at   time.Time
}

// list gives every object whose name begins so, ordered by name.
func (b *bucket) list(ctx context.Context, begin string) iter.Seq2[object, error] {
	return func(yield func(object, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if err := b.outage.enter(); err != nil {
			yield(object{}, err)
			return
		}
		var last error
		for info := range b.core.ListObjectsIter(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + begin, Recursive: true}) {
			last = b.explain(ctx, info.Err)
			if !yield(object{strings.TrimPrefix(info.Key, b.prefix), info.Size, info.LastModified}, last) {
				b.outage.leave(ctx, last)
				return // whoever stops, perhaps since ctx has ended, is not told so
			}
			if last != nil {
				break
			}
		}
		b.outage.leave(ctx, last)
		if last == nil && ctx.Err() != nil {
			yield(object{}, ctx.Err())
		}
	}
}

// probe is what names of objects begin with that only look whether the store takes them.
const probe = "probe-"

// now is the time by the clock that the store gives objects, cut to a second. It needs what the store allows: to write, read and remove.
func (b *bucket) now(ctx context.Context) (time.Time, error) {
	name := probe + uuid.NewString()
	if err := b.put(ctx, name, "", 0, bytes.NewReader(nil)); err != nil {
		return time.Time{}, err
	}
	_, at, err := b.stat(ctx, name)
	return at, errors.Join(err, b.remove(ctx, name))
}
