package blobs3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const (
	readersBelow = "readers/"
	// readerLasts is how long a reader is believed to be there that says nothing; it says something three times as often.
	readerLasts = time.Minute
)

// Reader reads blobs beside the servers that use the store. While it is open no Sweep that begins removes any; new ones appear.
type Reader struct {
	bucket *bucket
	ctx    context.Context //nolint:containedctx // of all that is read; backup.Blobs' Open has none
	cancel context.CancelFunc
	name   string
	ended  chan struct{}
	lost   atomic.Pointer[error] // why a Sweep may have removed something; nil: none did
}

// OpenBeside opens a store to read only. The caller closes it.
func OpenBeside(ctx context.Context, c Config) (*Reader, error) {
	b, err := openBucket(c)
	if err != nil {
		return nil, err
	}
	r := &Reader{bucket: b, name: readersBelow + uuid.NewString(), ended: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	if err := r.say(); err != nil {
		r.cancel()
		return nil, err
	}
	go r.stay(readerLasts / 3)
	return r, nil
}

func (r *Reader) say() error { return r.bucket.put(r.ctx, r.name, "", 0, bytes.NewReader(nil)) }

// stay says again and again that the reader is there. Once it could not say so in time, what it reads may be gone.
func (r *Reader) stay(every time.Duration) {
	defer close(r.ended)
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := time.Now()
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		at := time.Now()
		switch err := r.say(); {
		case err == nil && time.Since(said) < readerLasts:
			said = at
		case time.Since(said) >= readerLasts && r.ctx.Err() == nil:
			err = fault.Wrap(fault.Unavailable, err, "the store %s could not be told for a minute that it is read: content may have been removed meanwhile, begin again",
				r.bucket.config.Place)
			r.lost.Store(&err)
			return
		}
	}
}

// Each calls fn with every blob that is there.
func (r *Reader) Each(ctx context.Context, fn func(d fleet.Digest, size int64) error) error {
	for object, err := range r.bucket.list(ctx, blobsBelow) {
		if err != nil {
			return err
		}
		if err := r.lost.Load(); err != nil {
			return *err
		}
		d, is := digestOf(object.name)
		if !is {
			continue
		}
		if err := fn(d, object.size); err != nil {
			return err
		}
	}
	if err := r.lost.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// Open opens a blob, without looking whether it has its digest; NotFound.
func (r *Reader) Open(d fleet.Digest) (io.ReadCloser, error) {
	body, _, err := r.bucket.get(r.ctx, key(d), 0)
	if err != nil {
		return nil, err
	}
	return explained{body, r}, nil
}

// explained is an object whose errors say what an operator can do.
type explained struct {
	io.ReadCloser
	of *Reader
}

func (e explained) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = e.of.bucket.explain(e.of.ctx, err)
	}
	return n, err
}

// Close lets sweeps go on.
func (r *Reader) Close() error {
	r.cancel()
	<-r.ended
	return r.bucket.remove(context.WithoutCancel(r.ctx), r.name) // one that is left counts for a minute
}
