package pki

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"path/filepath"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// Adopted counts what a store holds after Adopt, and what Adopt deleted.
type Adopted struct {
	Certificates, Revoked int
	// Restored were only in the journal.
	Restored int
	// Discarded were another CA's.
	Discarded int
	// Damaged says what could not be read of the journal; empty if all could.
	Damaged string
}

// Adopt makes a CA directory and a store agree that do not, because one of them is
// empty, older, another CA's or damaged: afterwards both have every certificate that
// either has, and what is revoked in one is revoked. Rows of another CA are a Conflict,
// or deleted if discard says so. Join tokens are deleted: an older store holds some
// that were used up. No Authority may use either meanwhile.
func Adopt(ctx context.Context, cfg Config, store Store, discard bool, log *slog.Logger) (Adopted, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Adopted{}, err
	}
	path := filepath.Join(cfg.Dir, caFile)
	content, err := readFile(path)
	if err != nil {
		return Adopted{}, err
	}
	if content == nil {
		return Adopted{}, fault.New(fault.NotFound, "%s is missing: the CA's key can only come from a backup", path)
	}
	root, err := loadCA(cfg.Dir, content)
	if err != nil {
		return Adopted{}, err
	}
	if root.identity == "" {
		return Adopted{}, fault.New(fault.Conflict,
			"%s is of a version that kept no journal: the server begins one when it starts with the database that belongs to it", path)
	}
	return adoptStore(ctx, cfg.Dir, root, store, discard, log)
}

func adoptStore(ctx context.Context, dir string, root *ca, store Store, discard bool, log *slog.Logger) (done Adopted, err error) {
	have, err := store.CAAnchor(ctx)
	if err != nil {
		return done, err
	}
	journaled := newLedger()
	w, err := readJournal(dir, root.key.Public(), root.identity, journaled.apply)
	switch {
	case w == nil && have.Identity != root.identity:
		return done, fault.New(fault.Conflict,
			"the journal cannot be used (%s) and the database is not this CA's: what was revoked is known to a backup only", fault.Detail(err))
	case err != nil:
		done.Damaged = fault.Detail(err)
	}
	rows, err := ownRows(ctx, root, store, have, discard, &done)
	if err != nil {
		return done, err
	}
	all := journaled
	if w == nil || have.Identity == root.identity && have.Seq > w.last().Seq { // the store is newer: what it says of names counts
		all = newLedger()
		for _, row := range rows {
			all.add(row)
		}
		all.merge(journaled.rows())
	} else {
		all.merge(rows)
	}
	both := all.rows()
	done.count(both, rows)
	if err := store.RaiseCRLNumber(ctx, big.NewInt(time.Now().Unix())); err != nil { // above every number that was counted before
		return done, err
	}
	if err := store.DropTokens(ctx); err != nil {
		return done, err
	}
	j, err := beginJournal(dir, root.key, root.identity, have, both)
	if err != nil {
		return done, err
	}
	if err := store.RestateCA(ctx, j.last, both); err != nil {
		return done, err
	}
	log.InfoContext(ctx, "CA records adopted", "certificates", done.Certificates, "revoked", done.Revoked, "restored", done.Restored,
		"discarded", done.Discarded, "damaged", done.Damaged)
	return done, errors.Join(j.settled(), j.file.Close())
}

// ownRows is what the store knows of this CA.
func ownRows(ctx context.Context, root *ca, store Store, have Anchor, discard bool, done *Adopted) (own []Certificate, err error) {
	rows, err := store.History(ctx)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if root.ours(row) && (len(row.PEM) > 0 || have.Identity == "" || have.Identity == root.identity) {
			own = append(own, row)
		} else {
			done.Discarded++
		}
	}
	if done.Discarded > 0 && !discard {
		return nil, fault.New(fault.Conflict,
			"the database holds %s of another CA: start it with the CA directory that it belongs to, or delete them with --discard",
			fault.Count(done.Discarded, "certificate"))
	}
	return own, nil
}

func (d *Adopted) count(both, rows []Certificate) {
	d.Certificates = len(both)
	for _, c := range both {
		if !c.RevokedAt.IsZero() {
			d.Revoked++
		}
	}
	d.Restored = len(both) - len(rows)
}
