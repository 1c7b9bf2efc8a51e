package pki

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// howToGoOn is what every refusal to start ends with.
const howToGoOn = "put back what belongs together from a backup, or run `tutti ca adopt`, which makes both agree on everything that either knows"

// compactAbove is the size from which a journal is looked at for what nobody needs any more.
const compactAbove = 64 << 20

// identityLine stands before the key in ca.pem, where readers of PEM pass over it.
const identityLine = "Tutti CA identity: "

// identityIn finds a CA's identity in its file; empty in one that an earlier version wrote.
func identityIn(content []byte) string {
	text, _, _ := bytes.Cut(content, []byte("\n"))
	if id, found := strings.CutPrefix(string(text), identityLine); found {
		return id
	}
	return ""
}

// reconcile opens the journal and makes sure that the store is the one it belongs
// to, and as new. Only what a crash can leave is mended without being asked for; a
// store that is empty, another CA's or older is refused, for it would forget what
// was revoked. The journal of a CA that several processes share is not begun anew: the others go on with theirs.
func reconcile(ctx context.Context, dir string, c *ca, store Store, shared bool) (*journal, error) {
	have, err := store.CAAnchor(ctx)
	if err != nil {
		return nil, err
	}
	if c.identity == "" {
		return beginFirst(ctx, dir, c, store, have)
	}
	w, err := readJournal(dir, c.key.Public(), c.identity, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Of(err), err, "%s: %s", fault.Detail(err), howToGoOn)
	}
	remake, err := judge(w, have)
	if err != nil {
		return nil, err
	}
	j := w.journal(dir, c)
	if err := j.open(w.size); err != nil {
		return nil, err
	}
	if remake {
		return j, remakeStore(ctx, dir, c, store, j)
	}
	if w.tail == nil && w.size > compactAbove && !shared {
		return j.compact(ctx, dir, store)
	}
	return j, nil
}

// journal is what was read, to go on with.
func (w *written) journal(dir string, c *ca) *journal {
	return &journal{path: filepath.Join(dir, journalName(c.identity)), key: c.key, last: w.last(), unsettled: w.tail, tailAt: w.tailAt}
}

// judge says whether a journal and a store belong together, and whether the store
// has to be made anew from the journal because a crash kept it from being so.
func judge(w *written, have Anchor) (remake bool, err error) {
	last := w.last()
	switch {
	case !w.settled && have == w.head.Follows:
		return true, nil
	case have == last, w.tail != nil && have == w.tail.Before:
		return false, nil
	case have.Identity == "":
		return false, fault.New(fault.Conflict,
			"the database knows nothing of this CA, which has made %s: it is new, was emptied, or is a backup from before the CA kept "+
				"a journal; nodes whose certificates were revoked would be let in: %s", fault.Count(last.Seq, "change"), howToGoOn)
	case have.Identity != last.Identity:
		return false, fault.New(fault.Conflict,
			"the database belongs to another CA (its identity is %s, the CA directory's is %s): %s", have.Identity, last.Identity, howToGoOn)
	case have.Seq > last.Seq:
		return false, fault.New(fault.Conflict,
			"the CA directory is older than the database (it has made %s, the database has %d): %s", fault.Count(last.Seq, "change"), have.Seq, howToGoOn)
	case w.passed(have):
		return false, fault.New(fault.Conflict,
			"the database is older than the CA (it has %s, the CA has made %d): it was restored; what was revoked since then would be "+
				"forgotten: %s", fault.Count(have.Seq, "change"), last.Seq, howToGoOn)
	default:
		return false, fault.New(fault.Conflict, "the database and the CA directory have gone different ways after one of them was copied or restored "+
			"(the database has %s, the CA has made %d): %s", fault.Count(have.Seq, "change"), last.Seq, howToGoOn)
	}
}

// beginFirst begins the journal of a CA that has none: a new one, or one that an
// earlier version kept in the store alone.
func beginFirst(ctx context.Context, dir string, c *ca, store Store, have Anchor) (*journal, error) {
	if have.Identity != "" && have.Seq > 0 {
		return nil, fault.New(fault.Conflict, "the database belongs to a CA with the identity %s, and %s has none: it is of an earlier version, or another CA's: %s",
			have.Identity, filepath.Join(dir, caFile), howToGoOn)
	}
	rows, err := store.History(ctx)
	if err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(rows, func(row Certificate) bool { return !c.ours(row) }); at >= 0 {
		return nil, fault.New(fault.Conflict,
			"the database holds certificates of another CA (%s, serial number %s): start it with the CA directory that it belongs to",
			rows[at].Certname, fleet.Serial(rows[at].Serial))
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	j, err := beginJournal(dir, c.key, identity, have, rows)
	if err != nil {
		return nil, err
	}
	c.identity = identity
	if err := saveCA(dir, c); err != nil { // from here on the journal counts
		return nil, err
	}
	return j, remakeStore(ctx, dir, c, store, j)
}

// remakeStore makes the store's rows those of the journal.
func remakeStore(ctx context.Context, dir string, c *ca, store Store, j *journal) error {
	all := newLedger()
	if _, err := readJournal(dir, c.key.Public(), c.identity, all.apply); err != nil {
		return err
	}
	if err := store.RestateCA(ctx, j.last, all.rows()); err != nil {
		return err
	}
	return j.settled()
}

// compact begins the journal anew without certificates that ended a month ago and
// stand for no name, if those are half of all. The store forgets them, too.
func (j *journal) compact(ctx context.Context, dir string, store Store) (*journal, error) {
	all := newLedger()
	if _, err := readJournal(dir, j.key.Public(), j.last.Identity, all.apply); err != nil {
		return j, err
	}
	rows, before := all.rows(), time.Now().AddDate(0, -1, 0)
	kept := slices.DeleteFunc(slices.Clone(rows), func(c Certificate) bool { return c.Spent(before) })
	if len(kept) > len(rows)/2 {
		return j, nil
	}
	fresh, err := beginJournal(dir, j.key, j.last.Identity, j.last, kept)
	if err != nil {
		return j, err
	}
	if err := j.file.Close(); err != nil {
		return fresh, err
	}
	if err := store.RestateCA(ctx, fresh.last, kept); err != nil {
		return fresh, err
	}
	return fresh, fresh.settled()
}

// ours tells whether this CA signed what a row holds; of one without a certificate nobody can tell.
func (c *ca) ours(row Certificate) bool {
	if len(row.PEM) == 0 {
		return true
	}
	certs, err := parseCertificates(row.PEM)
	return err == nil && issuedBy(certs[0], c.signer()) && certs[0].CheckSignatureFrom(c.signer()) == nil
}
