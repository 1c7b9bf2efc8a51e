package connection

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/gobwas/ws"

	"github.com/tutti-project/tutti/internal/fault"
)

// frameOf is a masked frame around what fill appends, of at most limit bytes.
func frameOf(op ws.OpCode, limit int64, fill func(dst []byte) ([]byte, error)) ([]byte, error) {
	text, err := fill(make([]byte, ws.MaxHeaderSize, ws.MaxHeaderSize+512)) // room for the longest header
	if err != nil {
		return nil, err
	}
	payload := text[ws.MaxHeaderSize:]
	if size := int64(len(payload)); size > limit {
		return nil, fault.New(fault.Invalid, "the message has %d bytes, at most %d are allowed", size, limit)
	}
	header := ws.Header{Fin: true, OpCode: op, Masked: true, Mask: ws.NewMask(), Length: int64(len(payload))}
	ws.Cipher(payload, header.Mask, 0)
	start := ws.MaxHeaderSize - ws.HeaderSize(header)
	_ = ws.WriteHeader(bytes.NewBuffer(text[start:start]), header) // it fits before the payload
	return text[start:], nil
}

// controlFrame is a ping, pong or close frame.
func controlFrame(op ws.OpCode, payload []byte) []byte {
	frame, _ := frameOf(op, ws.MaxControlFramePayloadSize, func(dst []byte) ([]byte, error) { return append(dst, payload...), nil })
	return frame
}

// input reads a server's frames. It holds no memory between messages but a small buffer.
type input struct {
	*bufio.Reader
	max int64
}

// headBytes is enough for a header and the usual small message.
const headBytes = 512

// keptBytes is the largest buffer that is worth keeping.
const keptBytes = 64 << 10

var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// errTooLarge is answered with a close frame.
var errTooLarge = errors.New("the server sent a message that is larger than max_message_bytes")

// next reads one message and gives it to take, which does not keep it. Control frames that
// come before or inside it go to control.
func (in input) next(control func(ws.OpCode, []byte) error, take func(payload []byte, binary bool) error) error {
	header, err := in.dataHeader(false, control) // this is where an idle connection waits
	if err != nil {
		return err
	}
	message := messages.Get().(*bytes.Buffer)
	defer func() {
		if message.Cap() <= keptBytes {
			message.Reset()
			messages.Put(message)
		}
	}()
	binary := header.OpCode == ws.OpBinary
	for {
		if header.Length > in.max-int64(message.Len()) {
			return errTooLarge
		}
		if _, err := io.CopyN(message, in, header.Length); err != nil { // it grows with what comes, not with what is announced
			return err
		}
		if header.Fin {
			return take(message.Bytes(), binary)
		}
		if header, err = in.dataHeader(true, control); err != nil {
			return err
		}
	}
}

// dataHeader reads the header of the next frame that belongs to a message.
func (in input) dataHeader(fragmented bool, control func(ws.OpCode, []byte) error) (ws.Header, error) {
	for {
		header, err := in.header(fragmented)
		if err != nil || !header.OpCode.IsControl() {
			return header, err
		}
		payload := make([]byte, header.Length)
		if _, err := io.ReadFull(in, payload); err != nil {
			return header, err
		}
		if err := control(header.OpCode, payload); err != nil {
			return header, err
		}
	}
}

func (in input) header(fragmented bool) (ws.Header, error) {
	header, err := ws.ReadHeader(in)
	if err != nil {
		return header, err
	}
	state := ws.StateClientSide
	if fragmented {
		state = state.Set(ws.StateFragmented)
	}
	if err := ws.CheckHeader(header, state); err != nil {
		return header, fmt.Errorf("the server breaks the websocket protocol: %w", err)
	}
	return header, nil
}
