package local

import (
	"errors"

	bolt "go.etcd.io/bbolt"

	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// shelved is what a node may have. The document lies apart, so that all of these can be read at a start.
type shelved struct {
	Node    fleet.Certname  `json:"node"`
	Pointer deliver.Pointer `json:"pointer"`
}

// Keep implements near.Shelf.
func (s *Store) Keep(k near.Kept) error {
	if err := s.admit(); err != nil {
		return err
	}
	pointer, err := s.seal(shelved{k.Node, k.Pointer})
	if err != nil {
		return err
	}
	document, err := s.seal(k.Document)
	if err != nil {
		return err
	}
	return s.db.Batch(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(pointerBucket).Put([]byte(k.Node), pointer), tx.Bucket(documentBucket).Put([]byte(k.Node), document))
	})
}

// Kept implements near.Shelf.
func (s *Store) Kept(node fleet.Certname) (k near.Kept, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		pointer, document := tx.Bucket(pointerBucket).Get([]byte(node)), tx.Bucket(documentBucket).Get([]byte(node))
		if pointer == nil || document == nil {
			return fault.New(fault.NotFound, "no catalog of %s is kept", node)
		}
		var in shelved
		err := errors.Join(s.open(pointer, &in), s.open(document, &k.Document))
		k.Node, k.Pointer = in.Node, in.Pointer
		return err
	})
	return k, err
}

// Drop implements near.Shelf.
func (s *Store) Drop(node fleet.Certname) error {
	return s.db.Batch(func(tx *bolt.Tx) error {
		return errors.Join(tx.Bucket(pointerBucket).Delete([]byte(node)), tx.Bucket(documentBucket).Delete([]byte(node)))
	})
}

// Pointers implements near.Shelf.
func (s *Store) Pointers() (map[fleet.Certname]deliver.Pointer, error) {
	all := map[fleet.Certname]deliver.Pointer{}
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(pointerBucket).ForEach(func(k, v []byte) error {
			var in shelved
			if err := s.open(v, &in); err != nil {
				return err
			}
			all[fleet.Certname(k)] = in.Pointer
			return nil
		})
	})
	return all, err
}
