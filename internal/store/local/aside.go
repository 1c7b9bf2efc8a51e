package local

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/tutti-project/tutti/internal/checkin/near"
)

// SetAside implements near.Queue.
func (s *Store) SetAside(number uint64, why string) error {
	bytes := 0
	err := s.db.Update(func(tx *bolt.Tx) error {
		sealed := tx.Bucket(queueBucket).Get(key(number))
		if sealed == nil {
			return nil
		}
		var piece stored
		if err := s.open(sealed, &piece); err != nil {
			return err
		}
		piece.Why = why
		sealed, err := s.seal(piece)
		if err != nil {
			return err
		}
		bytes = len(sealed)
		return errors.Join(tx.Bucket(asideBucket).Put(key(number), sealed), tx.Bucket(queueBucket).Delete(key(number)))
	})
	if err != nil || bytes == 0 {
		return err
	}
	s.went([]uint64{number})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside(1, int64(bytes))
	return nil
}

// aside counts pieces that are set aside, or are no more.
func (s *Store) aside(pieces int, bytes int64) {
	s.load.Aside += pieces
	s.load.AsideBytes += bytes
}

// Refused is what was set aside: the first pieces whose numbers are above after, at most n.
func (s *Store) Refused(after uint64, n int) (some []near.Refused, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(asideBucket).Cursor()
		for k, v := cursor.Seek(key(after + 1)); k != nil && len(some) < n; k, v = cursor.Next() {
			var in stored
			if err := s.open(v, &in); err != nil {
				return fmt.Errorf("piece %d of what was set aside: %w", binary.BigEndian.Uint64(k), err)
			}
			some = append(some, near.Refused{Piece: in.piece(k), Why: in.Why, Bytes: int64(len(v))})
		}
		return nil
	})
	return some, err
}

// Again puts pieces that were set aside back where they were in the queue, and returns how many there were.
func (s *Store) Again(numbers []uint64) (int, error) {
	return s.settle(numbers, func(tx *bolt.Tx, k, sealed []byte) (near.Piece, int64, error) {
		var piece stored
		if err := s.open(sealed, &piece); err != nil {
			return near.Piece{}, 0, err
		}
		piece.Why = ""
		sealed, err := s.seal(piece)
		if err != nil {
			return near.Piece{}, 0, err
		}
		return piece.piece(k), int64(len(sealed)), tx.Bucket(queueBucket).Put(k, sealed)
	})
}

// Forget deletes pieces that were set aside, and returns how many there were.
func (s *Store) Forget(numbers []uint64) (int, error) {
	return s.settle(numbers, func(*bolt.Tx, []byte, []byte) (near.Piece, int64, error) { return near.Piece{}, 0, nil })
}

// settle takes pieces out of what was set aside. into returns what is queued of one, and its bytes; none: it is not.
func (s *Store) settle(numbers []uint64, into func(tx *bolt.Tx, k, sealed []byte) (near.Piece, int64, error)) (int, error) {
	var pieces []near.Piece
	var queued []int64
	gone := int64(0)
	err := s.db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket(asideBucket)
		for _, n := range numbers {
			k := key(n)
			sealed := bucket.Get(k)
			if sealed == nil {
				continue
			}
			gone += int64(len(sealed))
			p, bytes, err := into(tx, k, sealed)
			if err = errors.Join(err, bucket.Delete(k)); err != nil {
				return err
			}
			pieces, queued = append(pieces, p), append(queued, bytes)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aside(-len(pieces), -gone)
	for i, bytes := range queued {
		if bytes > 0 {
			s.came(pieces[i], bytes)
		}
	}
	return len(pieces), nil
}
