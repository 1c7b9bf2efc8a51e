package websocket

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/broker"
)

// frames makes messages out of the bytes of a client, in whatever pieces they
// come. Between messages it holds no memory.
type frames struct {
	max     int64                 // bytes of a message
	admit   func(n int64) bool    // waits for the turn of a large message; false: it need not
	reserve func(n int) bool      // asks for room for a part of a message
	release func()                // gives it all back
	message func([]byte, bool)    // a whole message, and whether it is binary; it is not kept
	control func(ws.Frame)        // a ping, pong or close frame; it is not kept
	refuse  func(broker.Farewell) // the message that comes is too large: it and all after it are skipped
	skip    bool                  // messages are of no interest any more

	head    []byte    // of a frame, as long as it is incomplete
	inFrame bool      // the header below is that of the frame that comes
	header  ws.Header //
	at      int64     // bytes of its payload that have come
	begun   ws.OpCode // of a message that goes on in further frames; 0: none
	parts   []byte    // of a message or control frame, unmasked
	inner   []byte    // the parts of a message, while a control frame stands between them
}

// feed takes the next bytes, which it may change. An error is a Farewell after
// which no more sense can be made of what follows.
func (f *frames) feed(data []byte) error {
	for {
		if !f.inFrame {
			rest, whole, err := f.readHeader(data)
			if err != nil || !whole {
				return err
			}
			data = rest
		}
		rest, whole := f.readPayload(data)
		if !whole || len(rest) == 0 {
			return nil
		}
		data = rest
	}
}

// readHeader looks for a frame's header at the beginning of data.
func (f *frames) readHeader(data []byte) (rest []byte, whole bool, err error) {
	head := data
	if f.head != nil {
		head = append(f.head, data[:min(len(data), ws.MaxHeaderSize)]...)
	}
	from := bytes.NewReader(head)
	header, err := ws.ReadHeader(from)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		if f.head = nil; len(head) > 0 {
			f.head = bytes.Clone(head)
		}
		return nil, false, nil
	case err != nil:
		return nil, false, violation(err)
	}
	used := len(head) - from.Len() - len(f.head)
	f.head = nil
	if err := f.check(header); err != nil {
		return nil, false, violation(err)
	}
	f.header, f.inFrame, f.at = header, true, 0
	switch {
	case header.OpCode.IsControl():
		f.inner, f.parts = f.parts, nil
	case !f.skip && f.begun == 0 && header.Length >= largeBytes && f.admit(header.Length):
		f.parts = make([]byte, 0, min(header.Length, largeRoom)) // it would grow to that, with copies
	}
	return data[used:], true, nil
}

// check refuses what RFC 6455 forbids, and what is too large before it comes.
func (f *frames) check(h ws.Header) error {
	state := ws.StateServerSide
	if f.begun != 0 {
		state = state.Set(ws.StateFragmented)
	}
	if err := ws.CheckHeader(h, state); err != nil {
		return err
	}
	if size := uint64(len(f.parts)) + uint64(h.Length); !h.OpCode.IsControl() && !f.skip && size > uint64(f.max) { //nolint:gosec // lengths are not negative
		f.giveUp(broker.Farewell{Code: 1009, Reason: fmt.Sprintf("%s message size [%d] exceeds maximum size [%d]", f.kindOf(h), size, f.max)})
	}
	return nil
}

// giveUp skips all messages from now on; control frames still count.
func (f *frames) giveUp(why broker.Farewell) {
	f.skip, f.parts = true, nil
	f.release()
	f.refuse(why)
}

func (f *frames) kindOf(h ws.Header) string {
	if f.isBinary(h) {
		return "Binary"
	}
	return "Text"
}

func (f *frames) isBinary(h ws.Header) bool {
	return h.OpCode == ws.OpBinary || h.OpCode == ws.OpContinuation && f.begun == ws.OpBinary
}

// readPayload takes what data has of the frame's payload. The usual small message, one
// frame in one piece, is used where it lies.
func (f *frames) readPayload(data []byte) (rest []byte, whole bool) {
	n := min(f.header.Length-f.at, int64(len(data)))
	piece, rest := data[:n], data[n:]
	ws.Cipher(piece, f.header.Mask, int(f.at%4))
	f.at += n
	whole = f.at == f.header.Length
	if f.skip && !f.header.OpCode.IsControl() {
		piece = nil
	}
	if whole && len(f.parts) == 0 && f.header.Fin {
		f.finish(piece)
		return rest, true
	}
	if !f.reserve(len(piece)) {
		f.giveUp(broker.Farewell{Code: 1013, Reason: "Too many large messages are on their way; try again later."})
		piece = nil
	}
	f.parts = append(f.parts, piece...)
	if whole {
		f.finish(f.parts)
	}
	return rest, whole
}

// finish ends a frame, whose message so far is payload.
func (f *frames) finish(payload []byte) {
	f.inFrame = false
	if f.header.OpCode.IsControl() {
		f.control(ws.Frame{Header: f.header, Payload: payload})
		f.parts, f.inner = f.inner, nil
		return
	}
	if !f.header.Fin {
		if f.begun == 0 {
			f.begun = f.header.OpCode
		}
		return
	}
	binary := f.isBinary(f.header)
	f.parts, f.begun = nil, 0
	if !f.skip {
		f.message(payload, binary)
	}
	f.release()
}

// violation is what a client is told that breaks the protocol.
func violation(err error) broker.Farewell {
	return broker.Farewell{Code: 1002, Reason: "Websocket protocol: " + err.Error() + "."}
}
