package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
)

// journal is the CA's own memory beside its key: every change, one line each, the
// last of them signed over the digest of all before. A line is on the disk before
// the store hears of the change, and the answer goes out after both. "done" says
// that the store has it: a change without it was cut off by a crash, and is the only
// one that the store may miss.
//
//	{"text":{"identity":...},"chain":D0,"signature":...}
//	{"text":{"seq":1,...},"chain":D1,"signature":...}
//	{"done":1}
type journal struct {
	path string
	key  crypto.Signer
	file *os.File
	size int64 // bytes that are whole
	last Anchor
	// unsettled is the last change if the store may not have it yet; its line begins at tailAt.
	unsettled *Change
	tailAt    int64
	kept      *Anchor // to where the last change led that the store turned out to have; see catchUp
}

// journalName is the file of a CA: one of another identity never takes its place.
func journalName(identity string) string { return "journal-" + identity + ".jsonl" }

// journalHead is the first line.
type journalHead struct {
	Version  int    `json:"version"`
	Identity string `json:"identity"`
	// Follows is where the store stood when this journal was begun. Until the first
	// "done" the store is to be made anew from it.
	Follows Anchor `json:"follows"`
}

type journalLine struct {
	Text      json.RawMessage `json:"text,omitempty"`
	Chain     string          `json:"chain,omitempty"`
	Signature []byte          `json:"signature,omitempty"`
	Done      *int64          `json:"done,omitempty"`
}

// restateBatch is how many certificates a line holds when rows are written down at once.
const restateBatch = 500

// beginJournal writes down rows as a journal of their own, in one step: before and
// after a crash there is the old one or the new one. The store is still at follows.
func beginJournal(dir string, key crypto.Signer, identity string, follows Anchor, rows []Certificate) (*journal, error) {
	j := &journal{path: filepath.Join(dir, journalName(identity)), key: key, last: Anchor{Identity: identity, Seq: follows.Seq}}
	head, err := json.Marshal(journalHead{Version: 1, Identity: identity, Follows: follows})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	line, err := j.line(head, "")
	if err != nil {
		return nil, err
	}
	text.Write(line)
	for len(rows) > 0 {
		n := min(len(rows), restateBatch)
		if line, err = j.next(&Change{At: now(), Issued: rows[:n]}); err != nil {
			return nil, err
		}
		text.Write(line)
		rows = rows[n:]
	}
	if err := writeFile(dir, journalName(identity), text.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return j, j.open(int64(text.Len()))
}

// open begins to write behind the first size bytes; what is behind those was cut off by a crash.
func (j *journal) open(size int64) error {
	file, err := os.OpenFile(j.path, os.O_RDWR, 0o600)
	if err != nil {
		return cannotWrite(filepath.Dir(j.path), err)
	}
	j.file, j.size = file, size
	if err := file.Truncate(size); err != nil {
		return errors.Join(cannotWrite(filepath.Dir(j.path), err), file.Close())
	}
	return nil
}

// line encodes one and moves the chain on.
func (j *journal) line(text []byte, chain string) ([]byte, error) {
	sum := sha256.Sum256(append([]byte(chain), text...))
	j.last.Chain = hex.EncodeToString(sum[:])
	signature, err := signMark(j.key, j.last)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(journalLine{Text: text, Chain: j.last.Chain, Signature: signature})
	return append(line, '\n'), err
}

// next encodes a change behind the last one and says between which anchors it stands.
func (j *journal) next(c *Change) ([]byte, error) {
	before := j.last
	c.Before, c.After = before, Anchor{Identity: before.Identity, Seq: before.Seq + 1}
	text, err := c.encode()
	if err != nil {
		return nil, err
	}
	j.last.Seq++
	line, err := j.line(text, before.Chain)
	if err != nil {
		j.last = before
		return nil, err
	}
	c.After = j.last
	return line, nil
}

// append makes a change known for good: when it returns, it is on the disk. Only
// one may be unsettled.
func (j *journal) append(c Change) error {
	before := j.last
	line, err := j.next(&c)
	at := j.size
	if err == nil {
		err = j.write(line, true)
	}
	if err != nil {
		j.last = before
		return err
	}
	c.Line = line
	j.unsettled, j.tailAt = &c, at
	return nil
}

// settled notes that the store has the last change. That needs no sync: a note that is
// lost only makes the next start offer the change to the store again.
func (j *journal) settled() error {
	line, err := json.Marshal(journalLine{Done: &j.last.Seq})
	if err != nil {
		return err
	}
	if err := j.write(append(line, '\n'), false); err != nil {
		return err
	}
	j.unsettled = nil
	return nil
}

// write appends a line whole, or leaves the file as it was.
func (j *journal) write(line []byte, synced bool) error {
	if j.file == nil {
		return j.closed()
	}
	_, err := j.file.WriteAt(line, j.size)
	if err == nil && synced {
		err = j.file.Sync()
	}
	if err == nil {
		j.size += int64(len(line))
		return nil
	}
	if undo := j.file.Truncate(j.size); undo != nil { // what is there now nobody knows before it is read again
		err = errors.Join(err, undo, j.file.Close())
		j.file = nil
	}
	return cannotWrite(filepath.Dir(j.path), err)
}

func (j *journal) closed() error {
	return fault.New(fault.Unavailable, "the CA's journal %s is closed after an error: start the server again", j.path)
}

// markText is what the CA's key signs of an anchor.
func markText(a Anchor) []byte {
	return fmt.Appendf(nil, "tutti CA journal\n%s\n%d\n%s\n", a.Identity, a.Seq, a.Chain)
}

func signMark(key crypto.Signer, a Anchor) ([]byte, error) { return signText(key, markText(a)) }

func markGood(public crypto.PublicKey, a Anchor, signature []byte) bool {
	return textGood(public, markText(a), signature)
}

// newIdentity is a CA directory's, and no other's.
func newIdentity() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(random[:]), nil
}
