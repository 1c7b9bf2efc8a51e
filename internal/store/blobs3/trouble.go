package blobs3

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/tutti-project/tutti/internal/fault"
)

// again is when clients may come back.
const again = 5 * time.Second

// errUnreachable is wrapped by errors of a store that gave no answer.
var errUnreachable = errors.New("no answer")

// explain says what an operator can do about an error of the store.
func (b *bucket) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*fault.Error](err); ours {
		return err
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err() // the caller left
	}
	answer, answered := errors.AsType[minio.ErrorResponse](err)
	if !answered {
		if pointer, is := errors.AsType[*minio.ErrorResponse](err); is {
			answer, answered = *pointer, true
		}
	}
	place := b.config.Place
	if !answered || answer.StatusCode == 0 {
		return b.later(errors.Join(errUnreachable, err), "the S3 store %s does not answer; what is cached is served, the rest is when it is back", place)
	}
	switch answer.Code {
	case minio.NoSuchKey, "NotFound":
		return fault.Wrap(fault.NotFound, err, "%s has no such object", place)
	case minio.NoSuchBucket:
		return b.later(err, "the S3 store has no bucket %s: make it, or name another with blobs", b.name)
	case minio.AccessDenied, "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AllAccessDisabled", "Forbidden":
		return b.later(err, "the S3 store %s refuses the credentials (%s): look at blobs_credentials, and at what its user may do", place, answer.Code)
	case "RequestTimeTooSkewed":
		return b.later(err, "the clocks of this machine and of the S3 store %s differ too much: set them right", place)
	case "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "XAmzQuotaExceeded":
		return b.later(err, "the S3 store %s is full (%s): make room there, nothing was stored", place, answer.Code)
	case "AuthorizationHeaderMalformed", "PermanentRedirect":
		return b.later(err, "the S3 store %s is in another region (%s): say which with blobs_region", place, answer.Code)
	}
	if answer.StatusCode == 507 {
		return b.later(err, "the S3 store %s is full (%s): make room there, nothing was stored", place, answer.Code)
	}
	if answer.StatusCode == 404 && answer.Code == "" {
		return fault.Wrap(fault.NotFound, err, "%s has no such object", place)
	}
	return b.later(err, "the S3 store %s answers %q; tried again later", place, answer.Code)
}

func (b *bucket) later(err error, format string, args ...any) error {
	told, _ := errors.AsType[*fault.Error](fault.Later(again, format, args...))
	told.Err = err
	return told
}

// outage spares a store that cannot be reached all requests but one a second, and those who ask the wait.
type outage struct {
	mu     sync.Mutex
	down   bool
	tried  time.Time
	reason error
}

// probeEvery is how often a store is tried that could not be reached.
const probeEvery = time.Second

func (o *outage) enter() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.down || time.Since(o.tried) > probeEvery {
		o.tried = time.Now()
		return nil
	}
	return o.reason
}

// leave notes how a request went.
func (o *outage) leave(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil && !errors.Is(err, errUnreachable) {
		return // says nothing
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down = errors.Is(err, errUnreachable); o.down {
		o.tried, o.reason = time.Now(), err
	}
}

// problem is why the store cannot be reached; nil: it can, as far as is known.
func (o *outage) problem() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		return o.reason
	}
	return nil
}
