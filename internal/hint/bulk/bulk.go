package bulk

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/hint/bus"
)

// MaxBytes is the most that a request or an answer may have: a message of a node, with what is around it.
const MaxBytes = 65 << 20

// ErrStore is wrapped by the error of a message that the store of content did not keep or give in time: nothing is known of the other server.
var ErrStore = errors.New("the store of content")

// Content is where large messages lie; a cas.Store that all servers share is one.
type Content interface {
	Put(ctx context.Context, r io.Reader) (fleet.Digest, int64, error)
	Open(ctx context.Context, d fleet.Digest) (cas.Blob, error)
}

// Bus is a bus whose requests and answers may be large. What is published may not.
type Bus struct {
	bus.Bus
	content Content
}

// New makes one over another bus.
func New(below bus.Bus, content Content) *Bus { return &Bus{below, content} }

// Request implements bus.Bus.
func (b *Bus) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	data, err := b.pack(ctx, data)
	if err != nil {
		return nil, err
	}
	answer, err := b.Bus.Request(ctx, subject, data)
	if err != nil {
		return nil, err
	}
	return b.unpack(ctx, answer)
}

// Subscribe implements bus.Bus.
func (b *Bus) Subscribe(s bus.Subscriber) (stop func(), err error) {
	take := s.Take
	s.Take = func(ctx context.Context, subject string, data []byte) ([]byte, error) {
		data, err := b.unpack(ctx, data)
		if err != nil {
			return nil, err
		}
		answer, err := take(ctx, subject, data)
		if err != nil {
			return nil, err
		}
		return b.pack(ctx, answer)
	}
	return b.Bus.Subscribe(s)
}

// mark begins a message that says where the message is.
var mark = []byte("content\x00")

// place is where a message is, and how it is read.
type place struct {
	Digest fleet.Digest `json:"digest"`
	Key    []byte       `json:"key"`
}

func (b *Bus) pack(ctx context.Context, data []byte) ([]byte, error) {
	if len(data) <= bus.MaxBytes && !bytes.HasPrefix(data, mark) {
		return data, nil
	}
	if len(data) > MaxBytes {
		return nil, fault.New(fault.Invalid, "a message between servers may have %d bytes, and this one has %d", MaxBytes, len(data))
	}
	at := place{Key: make([]byte, 32)}
	_, _ = rand.Read(at.Key) // it never fails
	sealer, err := sealerOf(at.Key)
	if err != nil {
		return nil, err
	}
	sealed := sealer.Seal(nil, nil, data, nil) //nolint:gosec // the sealer makes a nonce itself
	err = patiently(ctx, func() (err error) {
		at.Digest, _, err = b.content.Put(ctx, bytes.NewReader(sealed))
		return err
	})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, errors.Join(ErrStore, err), "a message of %d bytes to another server cannot be stored", len(data))
	}
	text, err := json.Marshal(at)
	return append(bytes.Clone(mark), text...), err
}

func (b *Bus) unpack(ctx context.Context, data []byte) ([]byte, error) {
	text, packed := bytes.CutPrefix(data, mark)
	if !packed {
		return data, nil
	}
	var at place
	if err := json.Unmarshal(text, &at); err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "a large message of another server does not say where it is")
	}
	sealer, err := sealerOf(at.Key)
	if err != nil {
		return nil, err
	}
	var sealed []byte
	err = patiently(ctx, func() (err error) {
		sealed, err = b.read(ctx, at.Digest)
		return err
	})
	switch {
	case fault.Is(err, fault.NotFound):
		return nil,
			fault.Wrap(fault.Internal, err, "a large message of another server is not in the store of content that this server has: all servers need the same one")
	case err != nil && lasts(err):
		return nil, fault.Wrap(fault.Internal, err, "a large message of another server is not what was stored")
	case err != nil:
		return nil,
			fault.Wrap(fault.Unavailable, errors.Join(ErrStore, err), "a large message of another server cannot be read from the store of content now")
	}
	message, err := sealer.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "a large message of another server is not what its key is for")
	}
	return message, nil
}

func (b *Bus) read(ctx context.Context, d fleet.Digest) (_ []byte, err error) {
	blob, err := b.content.Open(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	if blob.Size() > MaxBytes+64 { // with what sealing adds
		return nil, fault.New(fault.Invalid, "it has %d bytes", blob.Size())
	}
	return io.ReadAll(blob)
}

// pauses are between tries of the store, about as long as whoever sent a message waits for an answer: other messages wait, too.
var pauses = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 800 * time.Millisecond}

// patiently uses the store, and tries again what may succeed in a moment: whoever sent the message may not send it a second time.
func patiently(ctx context.Context, use func() error) error {
	for _, pause := range pauses {
		err := use()
		if err == nil || lasts(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
	return use()
}

// lasts says that it makes no sense to try again: the content is not there, or is another one.
func lasts(err error) bool {
	return fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) || errors.Is(err, cas.ErrCorrupt)
}

func sealerOf(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, err, "a large message has a wrong key")
	}
	return cipher.NewGCMWithRandomNonce(block)
}
