package pki

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// follow brings the journal here, and what is in memory, up to what other authorities of this CA have done. The caller has the turn.
func (r *records) follow(ctx context.Context) error {
	have, err := r.store.CAAnchor(ctx)
	if err != nil {
		return err
	}
	j := r.journal
	switch u := j.unsettled; {
	case u == nil && have == j.last:
		return r.noted(nil)
	case u != nil && (have == u.Before || have == u.After):
		return r.settle(ctx)
	}
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	return r.noted(nil)
}

// yield is what becomes of a change here that the store did not take, because another authority's came first.
func (r *records) yield(ctx context.Context, c Change) error {
	if err := r.catchUp(ctx); err != nil {
		return err
	}
	if r.journal.passedBy(c) {
		return r.noted(nil) // it was taken, and others came after it
	}
	return r.noted(fault.Later(time.Second, "another server changed the CA's records at the same moment; try again"))
}

func (r *records) catchUp(ctx context.Context) error {
	given, err := r.journal.catchUp(ctx, r.store, func(c Change) {
		r.answered(c)
		r.heard(c)
	})
	if given != nil {
		r.log.WarnContext(ctx, "a change that nobody was told of is given up, another server's came first", "change", given.After.Seq)
	}
	return err
}

// noted remembers where the journal stands, for those who look whether anything has happened.
func (r *records) noted(err error) error {
	at := r.journal.last
	r.at.Store(&at)
	return err
}

// passedBy tells whether a change that was the last one here is part of the journal.
func (j *journal) passedBy(c Change) bool { return j.kept != nil && *j.kept == c.After }

// catchUp appends the lines of others from the store, and hands each of their changes to each, which may be nil. A last change that the store
// may not have is settled if it is there; it is given up, and returned, if the store went on without it. Conflict when the
// store's lines do not follow from those here.
func (j *journal) catchUp(ctx context.Context, store SharedStore, each func(Change)) (given *Change, err error) {
	j.kept = nil
	for {
		lines, err := store.JournalLines(ctx, j.last.Seq)
		if err != nil {
			return given, err
		}
		if len(lines) == 0 || lines[0].Seq != j.last.Seq {
			return given, j.diverged()
		}
		switch same := chainOf(lines[0].Text) == j.last.Chain; {
		case same && j.unsettled != nil:
			kept := j.unsettled.After
			j.kept = &kept
			if err := j.settled(); err != nil {
				return given, err
			}
		case !same && j.unsettled != nil:
			switch had, err := hasLine(ctx, store, j.unsettled.Before); {
			case err != nil:
				return given, err
			case !had: // these are other records: what is here may count
				return given, j.diverged()
			}
			given = j.unsettled
			if err := j.giveUp(); err != nil {
				return given, err
			}
			continue
		case !same:
			return given, j.diverged()
		}
		if len(lines) == 1 {
			return given, nil
		}
		if err := j.take(lines[1:], each); err != nil {
			return given, err
		}
	}
}

func (j *journal) diverged() error {
	return fault.New(fault.Conflict, "the CA's records and the journal %s have gone different ways: %s", j.path, howToGoOn)
}

// giveUp takes the last change back, which was never answered for.
func (j *journal) giveUp() error {
	if j.file == nil {
		return j.closed()
	}
	if err := j.file.Truncate(j.tailAt); err != nil {
		return cannotWrite(filepath.Dir(j.path), err)
	}
	j.size, j.last, j.unsettled = j.tailAt, j.unsettled.Before, nil
	return nil
}

// take appends lines of others, which must follow from the last one here.
func (j *journal) take(lines []JournalLine, each func(Change)) error {
	var changes []Change
	r := journalReader{public: j.key.Public(), identity: j.last.Identity, each: func(c Change) { changes = append(changes, c) }}
	r.head.Follows.Seq, r.head.Identity, r.chains = j.last.Seq, j.last.Identity, []string{j.last.Chain}
	var text bytes.Buffer
	for _, line := range lines {
		if err := r.take(line.Text); err != nil {
			return fault.Wrap(fault.Conflict, err, "line %d of the CA's journal in the database is damaged: %s", line.Seq, howToGoOn)
		}
		text.Write(line.Text)
	}
	if !markGood(r.public, r.last(), r.signature) {
		return fault.New(fault.Conflict, "line %d of the CA's journal in the database is not signed by this CA's key: %s", r.last().Seq, howToGoOn)
	}
	if err := j.write(text.Bytes(), true); err != nil {
		return err
	}
	j.last = r.last()
	for _, c := range changes { // they count, whatever becomes of the note
		if each != nil {
			each(c)
		}
	}
	return j.settled()
}

// hasLine tells whether the store has the line that led to an anchor.
func hasLine(ctx context.Context, store SharedStore, at Anchor) (bool, error) {
	lines, err := store.JournalLines(ctx, at.Seq)
	return len(lines) > 0 && lines[0].Seq == at.Seq && chainOf(lines[0].Text) == at.Chain, err
}

// chainOf is the chain that a line carries; empty if it cannot be read.
func chainOf(text []byte) string {
	var line journalLine
	if json.Unmarshal(text, &line) != nil {
		return ""
	}
	return line.Chain
}

// The secrets that authorities of one CA share.
const (
	sharedCA    = "ca"       // the file ca.pem
	sharedLists = "ca-lists" // revocation lists of the CAs above ours
)

// howToTakeIt is what a server can do besides, whose own copy of a shared CA is of no use.
const howToTakeIt = "; or, if other servers have what is right, move this server's directory %s away: it takes the CA from the database then"

// openShared opens a CA that several processes share: the first one makes it, or brings its own, the others take it from the store.
func openShared(ctx context.Context, cfg Config, store Store) (*ca, *journal, error) {
	release, err := store.HoldCA(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	have, err := store.CAAnchor(ctx)
	if err != nil {
		return nil, nil, err
	}
	kept, err := cfg.Shared.Load(ctx, sharedCA)
	if err != nil {
		return nil, nil, err
	}
	if kept != nil && identityIn(kept) != have.Identity {
		kept = nil // of a CA that these records had before an import
	}
	own, err := readFile(filepath.Join(cfg.Dir, caFile))
	if err != nil {
		return nil, nil, err
	}
	if own == nil && kept != nil {
		if err := takeShared(ctx, cfg.Dir, kept, have, store); err != nil {
			return nil, nil, err
		}
	}
	if own != nil && kept != nil && identityIn(own) != identityIn(kept) {
		return nil, nil, fault.New(fault.Conflict, "%s is another CA than the one that the servers of this database share (identity %s, theirs is %s): "+
			"give this server an empty data directory, or a database of its own", filepath.Join(cfg.Dir, caFile), identityIn(own), identityIn(kept))
	}
	root, err := openCA(ctx, cfg, store)
	if err != nil {
		return nil, nil, err
	}
	if err := root.checkTime(time.Now()); err != nil {
		return nil, nil, err
	}
	if err := catchUpBefore(ctx, cfg.Dir, root, store); err != nil {
		return nil, nil, err
	}
	j, err := reconcile(ctx, cfg.Dir, root, store, true)
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok && slices.Contains([]fault.Kind{fault.Conflict, fault.NotFound, fault.Invalid}, f.Kind) {
			err = &fault.Error{Kind: f.Kind, Detail: f.Detail + fmt.Sprintf(howToTakeIt, cfg.Dir), Err: f.Err}
		}
		return nil, nil, err
	}
	return root, j, share(ctx, cfg, store, j, kept)
}

// takeShared writes down the CA and its journal as the store has them. The file with the key comes last: with it the directory counts.
func takeShared(ctx context.Context, dir string, kept []byte, have Anchor, store SharedStore) error {
	var text bytes.Buffer
	next := int64(0)
	for {
		lines, err := store.JournalLines(ctx, next)
		if err != nil {
			return err
		}
		if len(lines) == 0 {
			break
		}
		for _, line := range lines {
			text.Write(line.Text)
		}
		next = lines[len(lines)-1].Seq + 1
		fmt.Fprintf(&text, "{\"done\":%d}\n", next-1)
	}
	if next != have.Seq+1 {
		return fault.New(fault.Conflict, "the database has not the whole journal of the CA, since a server used it alone: start that one first, with cluster: true")
	}
	if err := writeFile(dir, journalName(identityIn(kept)), text.Bytes(), 0o600); err != nil {
		return err
	}
	return writeFile(dir, caFile, kept, 0o600)
}

// catchUpBefore brings the journal up to what others of the same CA wrote while this process did not run. What does not fit is left to
// reconcile, which says so.
func catchUpBefore(ctx context.Context, dir string, root *ca, store Store) error {
	if root.identity == "" {
		return nil
	}
	w, err := readJournal(dir, root.key.Public(), root.identity, nil)
	if err != nil {
		return nil //nolint:nilerr // reconcile reads it, too
	}
	have, err := store.CAAnchor(ctx)
	if err != nil || have == w.last() || w.tail != nil && have == w.tail.Before {
		return err
	}
	j := w.journal(dir, root)
	if err := j.open(w.size); err != nil {
		return err
	}
	_, err = j.catchUp(ctx, store, nil)
	if closing := j.file.Close(); err == nil || fault.Is(err, fault.Conflict) {
		return closing
	}
	return err
}

// share gives the store what others need of a CA and its journal, unless it has that.
func share(ctx context.Context, cfg Config, store Store, j *journal, kept []byte) error {
	if u := j.unsettled; u != nil {
		offered := *u
		had, err := hasLine(ctx, store, u.Before)
		if err != nil {
			return err
		}
		if !had { // nor those before it: all are kept below
			offered.Line = nil
		}
		if err := store.ChangeCA(ctx, offered); err != nil {
			return err
		}
		if err := j.settled(); err != nil {
			return err
		}
	}
	lines, err := store.JournalLines(ctx, j.last.Seq)
	if err != nil {
		return err
	}
	if len(lines) != 1 || chainOf(lines[0].Text) != j.last.Chain {
		if lines, err = linesOf(j.path); err != nil {
			return err
		}
		if err := store.KeepJournal(ctx, j.last, lines); err != nil {
			return err
		}
	}
	own, err := readFile(filepath.Join(cfg.Dir, caFile))
	if err != nil || bytes.Equal(own, kept) {
		return err
	}
	return cfg.Shared.Keep(ctx, sharedCA, own)
}

// linesOf are the lines of a journal that was read before.
func linesOf(path string) (lines []JournalLine, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the CA's journal %s cannot be read", path)
	}
	var seq int64
	for text := range bytes.Lines(content) {
		var line journalLine
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fault.Wrap(fault.Invalid, err, "the CA's journal %s is damaged", path)
		}
		switch {
		case line.Done != nil:
			continue
		case len(lines) == 0:
			var head journalHead
			if err := json.Unmarshal(line.Text, &head); err != nil {
				return nil, fault.Wrap(fault.Invalid, err, "the CA's journal %s is damaged", path)
			}
			seq = head.Follows.Seq
		default:
			seq++
		}
		lines = append(lines, JournalLine{Seq: seq, Text: slices.Clone(text)})
	}
	return lines, nil
}
