package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/store/durable"
)

// Sealer keeps texts from who has only the disk.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// Config is what a file is opened with.
type Config struct {
	MostBytes int64        // that the queue may take, with what was set aside
	Seal      Sealer       // of all that is in it
	Admit     func() error // asked before each write; what it returns is the write's error. Nil: all may be written
}

// Store is the file.
type Store struct {
	Config
	db     *bolt.DB
	packer *zstd.Encoder
	opener *zstd.Decoder

	mu    sync.Mutex // guards the rest
	load  near.Load
	sizes map[uint64]waiting
	early map[uint64]bool // pieces that went before they were counted
}

type waiting struct {
	bytes int64
	at    time.Time
}

var (
	queueBucket    = []byte("queue")    // number: sealed piece
	asideBucket    = []byte("aside")    // number: the same, with the reason
	pointerBucket  = []byte("pointers") // certname: sealed pointer
	documentBucket = []byte("documents")
)

// Exists tells whether there is a file from before.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// Open opens the file, and makes it if there is none.
func Open(path string, c Config) (*Store, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fault.Wrap(fault.Conflict, err, "another process uses %s", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "%s cannot be read: it holds what nodes sent while the database could not be reached; "+
			"bring the disk in order, or move the file away: then that is lost", path)
	}
	s := &Store{Config: c, db: db, sizes: map[uint64]waiting{}, early: map[uint64]bool{}}
	if s.packer, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err == nil {
		s.opener, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPiece))
	}
	if err == nil {
		err = db.Update(func(tx *bolt.Tx) error {
			for _, name := range [][]byte{queueBucket, asideBucket, pointerBucket, documentBucket} {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil {
		err = errors.Join(durable.SyncDir(filepath.Dir(path)), s.count())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return s, nil
}

// maxPiece is more than a piece has, in bytes: what would grow beyond it is damaged.
const maxPiece = 1 << 30

// Close closes the file.
func (s *Store) Close() error { return s.db.Close() }

// count reads what is queued from before.
func (s *Store) count() error {
	return s.db.View(func(tx *bolt.Tx) error {
		if err := tx.Bucket(asideBucket).ForEach(func(_, v []byte) error { s.aside(1, int64(len(v))); return nil }); err != nil {
			return err
		}
		return tx.Bucket(queueBucket).ForEach(func(k, v []byte) error {
			p, err := s.piece(k, v)
			if err != nil {
				return err
			}
			s.came(p, int64(len(v)))
			return nil
		})
	})
}

// stored is a piece in the file.
type stored struct {
	Kind near.Kind      `json:"kind"`
	Node fleet.Certname `json:"node"`
	At   time.Time      `json:"at"`
	Why  string         `json:"why,omitempty"` // of one that was set aside
	Body []byte         `json:"body"`
}

// Add implements near.Queue.
func (s *Store) Add(p near.Piece) error {
	sealed, err := s.seal(stored{Kind: p.Kind, Node: p.Node, At: p.At, Body: p.Body})
	if err != nil {
		return err
	}
	if err := s.admit(); err != nil {
		return err
	}
	if err := s.reserve(int64(len(sealed))); err != nil {
		return err
	}
	err = s.db.Batch(func(tx *bolt.Tx) (err error) {
		bucket := tx.Bucket(queueBucket)
		if p.Number, err = bucket.NextSequence(); err != nil {
			return err
		}
		return bucket.Put(key(p.Number), sealed)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load.Bytes -= int64(len(sealed)) // it was reserved
	if err != nil {
		return &fault.Error{
			Kind: fault.Unavailable, Detail: "this server cannot reach the database, and cannot write to its own disk", RetryAfter: comeBack, Err: err,
		}
	}
	s.came(p, int64(len(sealed)))
	return nil
}

// comeBack is when to try again what did not fit.
const comeBack = 30 * time.Second

// admit says why nothing may be written now.
func (s *Store) admit() error {
	if s.Admit == nil {
		return nil
	}
	return s.Admit()
}

// reserve takes room in the queue.
func (s *Store) reserve(bytes int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load.Bytes+s.load.AsideBytes+bytes > s.MostBytes {
		aside := ""
		if s.load.Aside > 0 {
			aside = fmt.Sprintf(", and %d bytes that the database refused: `tutti cluster set-aside list`", s.load.AsideBytes)
		}
		return fault.Later(comeBack,
			"this server cannot reach the database, and its queue is full (%s with %d bytes%s; near_queue_bytes): nothing more is taken until the database is back",
			fault.Count(int64(s.load.Pieces), "piece"), s.load.Bytes, aside)
	}
	s.load.Bytes += bytes
	return nil
}

// came counts a piece, unless it has gone again already: it can be read as soon as it is written.
func (s *Store) came(p near.Piece, bytes int64) {
	if s.early[p.Number] {
		delete(s.early, p.Number)
		return
	}
	s.sizes[p.Number] = waiting{bytes, p.At}
	s.load.Pieces++
	s.load.Bytes += bytes
	if s.load.Oldest.IsZero() || p.At.Before(s.load.Oldest) {
		s.load.Oldest = p.At
	}
}

// went counts pieces that were queued, and are no more.
func (s *Store) went(numbers []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range numbers {
		w, there := s.sizes[n]
		if !there {
			s.early[n] = true
			continue
		}
		delete(s.sizes, n)
		s.load.Pieces--
		s.load.Bytes -= w.bytes
	}
	s.load.Oldest = time.Time{}
	for _, w := range s.sizes {
		if s.load.Oldest.IsZero() || w.at.Before(s.load.Oldest) {
			s.load.Oldest = w.at
		}
	}
}

// Next implements near.Queue.
func (s *Store) Next(after uint64, n int) (some []near.Piece, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(queueBucket).Cursor()
		for k, v := cursor.Seek(key(after + 1)); k != nil && len(some) < n; k, v = cursor.Next() {
			p, err := s.piece(k, v)
			if err != nil {
				return err
			}
			some = append(some, p)
		}
		return nil
	})
	return some, err
}

// Remove implements near.Queue.
func (s *Store) Remove(numbers []uint64) error {
	if len(numbers) == 0 {
		return nil
	}
	var removed []uint64
	err := s.db.Update(func(tx *bolt.Tx) error {
		queue := tx.Bucket(queueBucket)
		for _, n := range numbers {
			if queue.Get(key(n)) == nil {
				continue
			}
			if err := queue.Delete(key(n)); err != nil {
				return err
			}
			removed = append(removed, n)
		}
		return nil
	})
	if err == nil {
		s.went(removed)
	}
	return err
}

// Load implements near.Queue.
func (s *Store) Load() near.Load {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load
}

func (s *Store) piece(k, v []byte) (near.Piece, error) {
	var in stored
	if err := s.open(v, &in); err != nil {
		return near.Piece{}, fmt.Errorf("piece %d of the queue: %w", binary.BigEndian.Uint64(k), err)
	}
	return in.piece(k), nil
}

func (in stored) piece(k []byte) near.Piece {
	return near.Piece{Number: binary.BigEndian.Uint64(k), Kind: in.Kind, Node: in.Node, At: in.At, Body: in.Body}
}

func key(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

// seal compresses and seals v.
func (s *Store) seal(v any) ([]byte, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.Seal.Seal(s.packer.EncodeAll(plain, nil))
}

func (s *Store) open(sealed []byte, v any) error {
	packed, err := s.Seal.Open(sealed)
	if err != nil {
		return err
	}
	plain, err := s.opener.DecodeAll(packed, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}
