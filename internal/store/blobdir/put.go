package blobdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/durable"
)

// Put implements cas.Store.
func (s *Store) Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error) {
	return s.put(ctx, r, "")
}

// PutAs implements cas.Store.
func (s *Store) PutAs(ctx context.Context, want fleet.Digest, r io.Reader) error {
	if _, err := fleet.ParseDigest(string(want)); err != nil {
		return err
	}
	_, _, err := s.put(ctx, r, want)
	return err
}

func (s *Store) put(ctx context.Context, r io.Reader, want fleet.Digest) (fleet.Digest, int64, error) {
	p, err := s.receive(ctx, r, want)
	if err != nil {
		return "", 0, err
	}
	if there, err := s.touch(p.digest); there || err != nil {
		s.discard(p)
		return p.digest, p.size, err
	}
	return p.digest, p.size, s.commits.commit([]*pending{p})
}

// pending is content that is written but not yet a blob.
type pending struct {
	name   string // in tmp/
	digest fleet.Digest
	size   int64
}

func (s *Store) discard(p *pending) { _ = os.Remove(p.name) }

// receive writes content to a file of its own and checks its digest.
func (s *Store) receive(ctx context.Context, r io.Reader, want fleet.Digest) (*pending, error) {
	if admit := s.admit.Load(); admit != nil {
		if err := (*admit)(); err != nil {
			return nil, err
		}
	}
	p := &pending{name: filepath.Join(s.tmpDir(), uuid.NewString())}
	f, err := s.create(p.name)
	if err != nil {
		return nil, s.diskFault(err)
	}
	h := sha256.New()
	p.size, err = s.copy(ctx, io.MultiWriter(f, h), r)
	if err = errors.Join(err, f.Close()); err != nil {
		s.discard(p)
		return nil, s.diskFault(err)
	}
	p.digest = fleet.Digest(hex.EncodeToString(h.Sum(nil)))
	if want != "" && want != p.digest {
		s.discard(p)
		return nil, fault.New(fault.Invalid, "the content has the digest %s, it was announced as %s", p.digest, want)
	}
	return p, nil
}

// copy copies through a pooled buffer and looks at the context now and then.
func (s *Store) copy(ctx context.Context, w io.Writer, r io.Reader) (n int64, err error) {
	buf := s.buffers.Get().(*[bufferBytes]byte)
	defer s.buffers.Put(buf)
	for {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		read, readErr := r.Read(buf[:])
		if read > 0 {
			if _, err := w.Write(buf[:read]); err != nil {
				return n, err
			}
			n += int64(read)
		}
		if errors.Is(readErr, io.EOF) {
			return n, nil
		}
		if readErr != nil {
			return n, readErr
		}
	}
}

// The bounds of what PutAll keeps in tmp/ before it commits.
const (
	batchBlobs = 16_384
	batchBytes = 256 << 20
)

// PutAll implements cas.Batcher.
func (s *Store) PutAll(ctx context.Context, sources iter.Seq[cas.Source]) (err error) {
	var batch []*pending
	var size int64
	defer func() {
		if err != nil {
			for _, p := range batch {
				s.discard(p)
			}
		}
	}()
	for source := range sources {
		p, err := s.receiveSource(ctx, source)
		if err != nil {
			return err
		}
		if p == nil {
			continue
		}
		batch, size = append(batch, p), size+p.size
		if len(batch) >= batchBlobs || size >= batchBytes {
			if err := s.commits.commit(batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
	}
	return s.commits.commit(batch)
}

// receiveSource returns nil for what is stored already.
func (s *Store) receiveSource(ctx context.Context, source cas.Source) (*pending, error) {
	if _, err := fleet.ParseDigest(string(source.Digest)); err != nil {
		return nil, err
	}
	if there, err := s.touch(source.Digest); there || err != nil {
		return nil, err
	}
	r, err := source.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return s.receive(ctx, r, source.Digest)
}

// committer makes pending content into blobs, everything that waits at once.
// The first caller that finds nobody at work does the work for all who are waiting.
type committer struct {
	store *Store

	mu      sync.Mutex
	working bool
	queue   []*commitRequest
}

type commitRequest struct {
	pending []*pending
	done    chan error
}

// commit returns when the content survives a crash.
func (c *committer) commit(pending []*pending) error {
	if len(pending) == 0 {
		return nil
	}
	request := &commitRequest{pending: pending, done: make(chan error, 1)}
	c.mu.Lock()
	c.queue = append(c.queue, request)
	lead := !c.working
	c.working = true
	c.mu.Unlock()
	if lead {
		c.work()
	}
	return <-request.done
}

// work commits what is queued until nothing is.
func (c *committer) work() {
	for {
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		if len(queue) == 0 {
			c.working = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		var all []*pending
		for _, request := range queue {
			all = append(all, request.pending...)
		}
		err := c.store.publish(all)
		for _, request := range queue {
			request.done <- err
		}
	}
}

// publish brings contents to the disk and gives them their names.
func (s *Store) publish(all []*pending) (err error) {
	defer func() {
		for _, p := range all {
			s.discard(p) // what has its name now is not there any more
		}
		err = s.diskFault(err)
	}()
	switch {
	case s.loose:
	case len(all) == 1:
		err = syncFile(all[0].name)
	default:
		err = s.syncAll(all)
	}
	if err != nil {
		return err
	}
	return s.rename(all)
}

// rename holds the shards' locks until the names are on the disk too: who finds
// a blob under the lock may rely on it.
func (s *Store) rename(all []*pending) error {
	var touched [256]bool
	for _, p := range all {
		touched[shardIndex(p.digest)] = true
	}
	for i := range touched {
		if touched[i] {
			s.shards[i].mu.Lock()
			defer s.shards[i].mu.Unlock()
		}
	}
	for _, p := range all {
		if err := s.name(p); err != nil {
			return err
		}
	}
	return s.syncNames(all, touched[:])
}

// name moves content to its place. The caller holds the shard's lock.
func (s *Store) name(p *pending) error {
	if there, err := s.renew(p.digest); there || err != nil {
		return err
	}
	if err := os.Chtimes(p.name, time.Time{}, time.Now()); err != nil {
		return err
	}
	info, err := os.Lstat(p.name)
	if err != nil {
		return err
	}
	if err := os.Rename(p.name, s.path(p.digest)); err != nil {
		return err
	}
	s.shardOf(p.digest).know(p.digest, identify(info))
	return nil
}

// syncNames brings the directories to the disk: one by one when they are few,
// otherwise with everything else.
func (s *Store) syncNames(all []*pending, touched []bool) error {
	if s.loose {
		return nil
	}
	if len(all) > 2 {
		if done, err := syncFileSystem(s.lock); done {
			return err
		}
	}
	for i := range touched {
		if touched[i] {
			if err := durable.SyncDir(s.shardDir(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Store) syncAll(all []*pending) error {
	if done, err := syncFileSystem(s.lock); done {
		return err
	}
	for _, p := range all {
		if err := syncFile(p.name); err != nil {
			return err
		}
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
