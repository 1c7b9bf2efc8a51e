package connection

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/gobwas/ws"
)

// FuzzInput: whatever a server sends, reading ends, nothing larger than the limit comes out, and what one
// side writes the other reads.
func FuzzInput(f *testing.F) {
	f.Add(ws.MustCompileFrame(ws.NewTextFrame([]byte("{}"))))
	f.Add(ws.MustCompileFrame(ws.NewFrame(ws.OpText, false, []byte("{"))))
	f.Add(append(ws.MustCompileFrame(ws.NewPingFrame([]byte("x"))), ws.MustCompileFrame(ws.NewBinaryFrame(bytes.Repeat([]byte("y"), 300)))...))
	f.Add([]byte{0x81, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 200
		in := input{bufio.NewReaderSize(bytes.NewReader(data), headBytes), limit}
		var err error
		for err == nil {
			err = in.next(func(op ws.OpCode, payload []byte) error {
				if !op.IsControl() || len(payload) > ws.MaxControlFramePayloadSize {
					t.Errorf("a control frame of kind %x with %d bytes", op, len(payload))
				}
				return nil
			}, func(payload []byte, _ bool) error {
				if len(payload) > limit {
					t.Errorf("a message of %d bytes", len(payload))
				}
				return nil
			})
		}
		frame, err := frameOf(ws.OpText, limit, func(dst []byte) ([]byte, error) { return append(dst, data...), nil })
		if (err == nil) != (len(data) <= limit) {
			t.Errorf("%d bytes: %v", len(data), err)
		}
		if err != nil {
			return
		}
		header, err := ws.ReadHeader(bytes.NewReader(frame))
		if err != nil || !header.Masked || ws.HeaderSize(header)+len(data) != len(frame) {
			t.Fatalf("the frame cannot be read: %+v, %v", header, err)
		}
		payload := frame[ws.HeaderSize(header):]
		ws.Cipher(payload, header.Mask, 0)
		if !bytes.Equal(payload, data) {
			t.Errorf("%q became %q", data, payload)
		}
	})
}

func TestWhatAServerCanTake(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]int64{
		"Text message size [300000] exceeds maximum size [100000]": 100_000,
		"exceeds maximum size [-4]":                                0,
		"exceeds maximum size [":                                   0,
		"max_message_bytes":                                        0,
	} {
		if got := (farewell{codeTooLarge, reason}).largest(); got != want {
			t.Errorf("%q: %d, want %d", reason, got, want)
		}
	}
	if !errors.Is(plain(errTooLarge), errTooLarge) || errors.Is(plain(io.EOF), io.EOF) {
		t.Error("only the end without a word is told in other words")
	}
}
