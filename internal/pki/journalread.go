package pki

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tutti-project/tutti/internal/fault"
)

// written is what a journal says.
type written struct {
	head    journalHead
	chains  []string // of the head, and of each change behind it
	tail    *Change  // the last one, if nothing says that the store has it
	tailAt  int64    // where its line begins
	settled bool     // the store had something of it once
	size    int64    // bytes that are whole
}

// last is where the journal has come to.
func (w *written) last() Anchor {
	return Anchor{Identity: w.head.Identity, Seq: w.head.Follows.Seq + int64(len(w.chains)) - 1, Chain: w.chains[len(w.chains)-1]}
}

// passed tells whether the journal once was at an anchor.
func (w *written) passed(a Anchor) bool {
	at := a.Seq - w.head.Follows.Seq
	return a.Identity == w.head.Identity && at >= 0 && at < int64(len(w.chains)) && w.chains[at] == a.Chain
}

// readJournal reads and verifies a CA's journal, and hands each change to each, which may
// be nil. A missing one is NotFound. One that is damaged is Invalid; what was read
// before the damage is returned beside the error, nil if it is nothing. A last line
// without an end was cut off by a crash and never answered for: it is passed over.
func readJournal(dir string, public crypto.PublicKey, identity string, each func(Change)) (*written, error) {
	path := filepath.Join(dir, journalName(identity))
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.NotFound, "the CA's journal %s is missing", path)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "the CA's journal %s cannot be read", path)
	}
	defer func() { _ = file.Close() }() // only read
	r := journalReader{public: public, identity: identity, each: each}
	lines := bufio.NewReaderSize(file, 1<<20)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.found(), fault.Wrap(fault.Unavailable, err, "the CA's journal %s cannot be read", path)
		}
		if err := r.take(text); err != nil {
			return r.found(), fault.Wrap(fault.Invalid, err, "line %d of the CA's journal %s is damaged", n, path)
		}
		r.size += int64(len(text))
	}
	if len(r.chains) == 0 {
		return nil, fault.New(fault.Invalid, "the CA's journal %s is empty", path)
	}
	if !markGood(public, r.last(), r.signature) {
		return r.found(), fault.New(fault.Invalid, "the end of the CA's journal %s is not signed by this CA's key", path)
	}
	return r.found(), nil
}

type journalReader struct {
	written
	public    crypto.PublicKey
	identity  string
	each      func(Change)
	signature []byte
}

func (r *journalReader) found() *written {
	if len(r.chains) == 0 {
		return nil
	}
	return &r.written
}

var errJournal = errors.New("it does not follow from the lines before it")

func (r *journalReader) take(text []byte) error {
	var line journalLine
	if err := json.Unmarshal(text, &line); err != nil {
		return err
	}
	if line.Done != nil {
		if len(r.chains) == 0 || *line.Done != r.last().Seq {
			return errJournal
		}
		r.settled, r.tail = true, nil
		return nil
	}
	before := ""
	if len(r.chains) > 0 {
		before = r.chains[len(r.chains)-1]
	}
	sum := sha256.Sum256(append([]byte(before), line.Text...))
	if line.Chain != hex.EncodeToString(sum[:]) {
		return errJournal
	}
	if len(r.chains) == 0 {
		if err := json.Unmarshal(line.Text, &r.head); err != nil {
			return err
		}
		if r.head.Identity != r.identity || r.head.Version != 1 {
			return errors.New("it is another CA's journal, or a later version's")
		}
		r.chains, r.signature = []string{line.Chain}, line.Signature
		return nil
	}
	change, err := decodeChange(bytes.Clone(line.Text))
	if err != nil {
		return err
	}
	change.Before = r.last()
	r.chains, r.signature = append(r.chains, line.Chain), line.Signature
	if change.After.Seq != r.last().Seq {
		return errJournal
	}
	change.After, change.Line = r.last(), text
	r.tail, r.tailAt = &change, r.size
	if r.each != nil {
		r.each(change)
	}
	return nil
}
