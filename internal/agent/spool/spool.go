// Package spool keeps what a node was asked to do, and what came of it, in a directory.
//
// Each transaction is a directory of its name:
//
//	metadata  JSON: who asked for what, when, and how it ended
//	pid       of the process that watches over the program
//	alive     locked by that process for as long as it lives
//	stdout, stderr
//	ended     why the program was ended before it ended by itself, if it was
//	exitcode  a number: written last, and all at once
//
// The agent writes metadata, the watching process the rest. This is the
// original agent's layout with alive, ended, and some more keys in metadata. Parameters are never
// written: request_params is always {}. Whatever else is in a transaction's directory belongs to
// it while it runs, and is removed when it is over.
//
// # Failure
//
// A transaction appears with its metadata in it, or not at all; metadata and
// exitcode are replaced, never changed; both are on the disk when the call returns.
//
// # Errors
//
// Those of orders.Spool. A full disk is Unavailable, and says so.
//
// # Concurrency
//
// A Spool may be used concurrently. One process has a spool at a time: Open refuses a second one.
package spool

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/uuid"

	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/store/durable"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

const (
	dirMode  = 0o750
	fileMode = 0o640
	// maxOutputBytes bounds what is read of one stream. Who writes it has a smaller bound.
	maxOutputBytes   = 64 << 20
	maxMetadataBytes = 1 << 20
)

// leaving is how long Open waits for an earlier process: one that was killed may have
// a child that has yet to become another program.
const leaving = 2 * time.Second

// Spool is transactions in a directory.
type Spool struct {
	dir   string
	log   *slog.Logger
	lock  *flock.Flock
	write func(path string, content []byte) error // durably, and at once; tests break it
}

var _ orders.Spool = (*Spool)(nil)

// Open takes a directory, which is made if it is not there. It is Conflict when
// another process has it.
func Open(dir string, log *slog.Logger) (*Spool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the spool %s cannot be made", dir)
	}
	lock := flock.New(filepath.Join(dir, ".lock"), flock.SetPermissions(fileMode))
	mine, err := take(lock)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the spool %s cannot be written to", dir)
	}
	if !mine {
		return nil, fault.New(fault.Conflict, "another agent uses the spool %s", dir)
	}
	s := &Spool{dir: dir, log: log, lock: lock, write: replace}
	return s, s.tidy()
}

// take locks, or waits a little for who has the lock.
func take(lock *flock.Flock) (mine bool, err error) {
	const tries = 20
	for range tries {
		if mine, err = lock.TryLock(); mine || err != nil {
			return mine, err
		}
		<-time.After(leaving / tries)
	}
	return false, nil
}

// tidy removes what an earlier process was about to make.
func (s *Spool) tidy() error {
	leftovers, err := filepath.Glob(filepath.Join(s.dir, newPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range leftovers {
		if err := os.RemoveAll(path); err != nil {
			return fault.Wrap(fault.Unavailable, err, "the spool %s cannot be written to", s.dir)
		}
	}
	return nil
}

// Close gives the directory back.
func (s *Spool) Close() error { return s.lock.Close() }

// newPrefix begins the names of transactions that are being made.
const newPrefix = ".new-"

// Begin implements orders.Spool.
func (s *Spool) Begin(r orders.Record) (string, error) {
	if err := pxp.CheckTransaction(r.Transaction); err != nil {
		return "", err
	}
	place := s.Place(r.Transaction)
	if _, err := os.Lstat(place); err == nil {
		return "", there(r.Transaction)
	}
	fresh := filepath.Join(s.dir, newPrefix+uuid.NewString())
	if err := s.make(fresh, place, r); err != nil {
		_ = os.RemoveAll(fresh)
		if _, taken := os.Lstat(place); taken == nil {
			return "", there(r.Transaction)
		}
		return "", s.broken(err)
	}
	return place, nil
}

// make makes a directory with its metadata under another name, and renames it:
// that fails if the name is taken.
func (s *Spool) make(fresh, place string, r orders.Record) error {
	if err := os.Mkdir(fresh, dirMode); err != nil {
		return err
	}
	if err := s.write(filepath.Join(fresh, orders.MetadataFile), encode(r)); err != nil {
		return err
	}
	if err := os.Rename(fresh, place); err != nil {
		return err
	}
	return durable.SyncDir(s.dir)
}

func there(transaction string) error {
	return fault.New(fault.Conflict, "the transaction %s is there already", transaction)
}

// Place implements orders.Spool.
func (s *Spool) Place(transaction string) string { return filepath.Join(s.dir, transaction) }

// Save implements orders.Spool.
func (s *Spool) Save(r orders.Record) error {
	place, err := s.find(r.Transaction)
	if err != nil {
		return err
	}
	if err := s.write(filepath.Join(place, orders.MetadataFile), encode(r)); err != nil {
		return s.broken(err)
	}
	if r.Status.Over() {
		s.sweep(place)
	}
	return nil
}

// sweep removes files that a program needed. What cannot be removed goes with the transaction.
func (s *Spool) sweep(place string) {
	entries, err := os.ReadDir(place)
	if err != nil {
		return
	}
	for _, entry := range entries {
		switch entry.Name() {
		case orders.MetadataFile, orders.PIDFile, orders.AliveFile, orders.StdoutFile, orders.StderrFile, orders.EndedFile, orders.ExitFile:
		default:
			if err := os.RemoveAll(filepath.Join(place, entry.Name())); err != nil {
				s.log.WarnContext(context.Background(), "files of a transaction not removed yet", "place", place, "err", err)
			}
		}
	}
}

// find is the place of a transaction that is there.
func (s *Spool) find(transaction string) (string, error) {
	notThere := fault.New(fault.NotFound, "there is no transaction %.80q", transaction)
	if pxp.CheckTransaction(transaction) != nil {
		return "", notThere
	}
	place := s.Place(transaction)
	_, err := os.Lstat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", notThere
	case err != nil:
		return "", s.broken(err)
	default:
		return place, nil
	}
}

// Load implements orders.Spool.
func (s *Spool) Load(transaction string) (orders.Record, error) {
	place, err := s.find(transaction)
	if err != nil {
		return orders.Record{}, err
	}
	text, err := readBounded(filepath.Join(place, orders.MetadataFile), maxMetadataBytes)
	if err != nil {
		return orders.Record{}, fault.Wrap(fault.Invalid, err, "the record of the transaction %s cannot be read", transaction)
	}
	return decode(transaction, text)
}

// Write implements orders.Spool.
func (s *Spool) Write(transaction string, o orders.Output) error {
	place, err := s.find(transaction)
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{orders.StdoutFile, o.Stdout}, {orders.StderrFile, o.Stderr}, {orders.EndedFile, []byte(o.Ended)}} {
		if len(file.content) == 0 {
			continue
		}
		if err := s.write(filepath.Join(place, file.name), file.content); err != nil {
			return s.broken(err)
		}
	}
	if o.Exit == nil {
		return nil
	}
	return s.broken(s.write(filepath.Join(place, orders.ExitFile), strconv.AppendInt(nil, int64(*o.Exit), 10)))
}

// Output implements orders.Spool.
func (s *Spool) Output(transaction string) (orders.Output, error) {
	place, err := s.find(transaction)
	if err != nil {
		return orders.Output{}, err
	}
	var o orders.Output
	o.Exit, err = readExit(filepath.Join(place, orders.ExitFile)) // first: after it, nothing changes
	if err != nil {
		return o, s.broken(err)
	}
	_, pidErr := os.Lstat(filepath.Join(place, orders.PIDFile))
	o.Begun = o.Exit != nil || pidErr == nil
	var ended []byte
	for name, content := range map[string]*[]byte{orders.StdoutFile: &o.Stdout, orders.StderrFile: &o.Stderr, orders.EndedFile: &ended} {
		*content, err = readBounded(filepath.Join(place, name), maxOutputBytes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return o, s.broken(err)
		}
	}
	o.Ended = strings.TrimSpace(string(ended))
	return o, nil
}

// readExit reads an exit code; nil: there is none, or not a whole one.
func readExit(path string) (*int, error) {
	text, err := readBounded(path, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, err
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // some foreign writer was cut off
	}
	return &code, nil
}

// Remove implements orders.Spool.
func (s *Spool) Remove(transaction string) error {
	place, err := s.find(transaction)
	if fault.Of(err) == fault.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	return s.broken(os.RemoveAll(place))
}

// List implements orders.Spool.
func (s *Spool) List() ([]orders.Record, error) {
	var list []orders.Record
	err := s.each(func(transaction string, _ fs.DirEntry) error {
		r, err := s.Load(transaction)
		kind := fault.Of(err)
		switch {
		case err != nil && kind == fault.NotFound:
			return nil
		case err != nil && kind == fault.Invalid:
			s.log.WarnContext(context.Background(), "transaction passed over, its record cannot be read", "transaction", transaction, "err", err)
			return nil
		}
		list = append(list, r)
		return err
	})
	sortRecords(list)
	return list, err
}

// each calls visit for all transactions.
func (s *Spool) each(visit func(transaction string, entry fs.DirEntry) error) error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return s.broken(err)
	}
	for _, entry := range entries {
		if !entry.IsDir() || pxp.CheckTransaction(entry.Name()) != nil {
			continue
		}
		if err := visit(entry.Name(), entry); err != nil {
			return err
		}
	}
	return nil
}

// Purge implements orders.Spool. One that cannot be read is as old as its directory.
func (s *Spool) Purge(before time.Time, keep func(string) bool) (int, error) {
	gone := 0
	err := s.each(func(transaction string, entry fs.DirEntry) error {
		if !s.old(transaction, entry, before) || keep(transaction) {
			return nil
		}
		gone++
		return s.Remove(transaction)
	})
	return gone, err
}

func (s *Spool) old(transaction string, entry fs.DirEntry, before time.Time) bool {
	r, err := s.Load(transaction)
	if err == nil {
		return r.Status.Over() && r.Start.Before(before)
	}
	info, infoErr := entry.Info()
	return fault.Of(err) == fault.Invalid && infoErr == nil && info.ModTime().Before(before)
}

// broken says of an error of the disk what it means.
func (s *Spool) broken(err error) error {
	switch {
	case err == nil:
		return nil
	case isFull(err):
		return fault.Wrap(fault.Unavailable, err, "the disk of the spool %s is full: make room there", s.dir)
	default:
		return fault.Wrap(fault.Unavailable, err, "the spool %s cannot be used: %v", s.dir, err)
	}
}
