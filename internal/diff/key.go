package diff

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Key names a group: an HMAC of the change. Who has no key of the grouper cannot
// check a guess of a hidden value against it.
type Key [16]byte

// keying writes the parts of a change into an HMAC, each with its length.
type keying struct {
	hash  hash.Hash
	names names
}

func newKeying(secret []byte, n names) keying { return keying{hmac.New(sha256.New, secret), n} }

func (k keying) sum() Key {
	return Key(k.hash.Sum(nil)[:len(Key{})])
}

// words adds texts as they are.
func (k keying) words(texts ...string) {
	for _, text := range texts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(text)))
		k.hash.Write(size[:])
		k.hash.Write([]byte(text))
	}
}

// text adds a text in which the node's own names do not count.
func (k keying) text(text string) { k.words(k.names.pattern(text)) }

func (k keying) value(v *value) {
	if v == nil {
		k.words("none")
		return
	}
	k.words("value", k.names.pattern(v.canonical()))
}

// resource adds a change of a resource. Order counts only where nothing else
// differs: it would split groups that are the same to the reader.
func (k keying) resource(r *resourceChange) {
	order := r.isOrder()
	k.words("resource", string(r.kind), r.typ)
	k.text(r.title)
	k.flag(r.exported)
	k.flag(order)
	for i := range r.parameters {
		if p := &r.parameters[i]; order || !p.isOrder() {
			k.words("parameter", p.name, string(p.kind))
			k.value(p.old)
			k.value(p.new)
		}
	}
	for i := range r.files {
		k.words("file", r.files[i].path, string(r.files[i].kind))
		k.file(r.files[i].old)
		k.file(r.files[i].new)
	}
	if order {
		k.tags(r.tags)
	}
}

func (k keying) flag(set bool) {
	if set {
		k.words("yes")
	} else {
		k.words("no")
	}
}

func (k keying) file(f file) {
	k.words(f.Type, f.Checksum, f.Destination, f.Owner, f.Group, f.Mode)
}

func (k keying) tags(s setChange) {
	k.words("tags")
	for _, tag := range s.removed {
		k.text("-" + tag)
	}
	for _, tag := range s.added {
		k.text("+" + tag)
	}
}
