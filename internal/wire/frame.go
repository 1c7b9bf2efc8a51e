package wire

import (
	"encoding/binary"
	"math"

	"github.com/tutti-project/tutti/internal/fault"
)

// A PCP 1 message is a version byte and chunks: a byte whose low half says what
// follows, four bytes of length, the content.
const (
	versionByte   = 1
	chunkHeader   = 5
	chunkEnvelope = 1
	chunkData     = 2
	chunkDebug    = 3
	chunkKind     = 0x0f // the other half is reserved
)

// chunks is what a frame holds. Its slices are of the frame.
type chunks struct {
	envelope []byte
	data     []byte // nil: there is none
}

// splitFrame finds the chunks: one envelope, then at most one of data, then any
// number for debugging, which are dropped.
func splitFrame(frame []byte) (c chunks, err error) {
	if len(frame) == 0 || frame[0] != versionByte {
		return c, fault.New(fault.Invalid, "the frame does not begin with the version byte %d", versionByte)
	}
	rest, last := frame[1:], byte(0)
	for len(rest) > 0 {
		var kind byte
		var content []byte
		if kind, content, rest, err = splitChunk(rest); err != nil {
			return c, err
		}
		switch {
		case kind == chunkEnvelope && last == 0:
			c.envelope = content
		case kind == chunkData && last == chunkEnvelope:
			c.data = content
		case kind == chunkDebug && last != 0:
		default:
			return c, fault.New(fault.Invalid,
				"the frame has a chunk of kind %d after one of kind %d; it has one envelope (1), then at most one of data (2), then debug (3)", kind, last)
		}
		last = kind
	}
	if last == 0 {
		return c, fault.New(fault.Invalid, "the frame has no envelope chunk")
	}
	return c, nil
}

func splitChunk(from []byte) (kind byte, content, rest []byte, err error) {
	if len(from) < chunkHeader {
		return 0, nil, nil, fault.New(fault.Invalid, "the frame ends inside a chunk's header: %d bytes of %d", len(from), chunkHeader)
	}
	size, body := binary.BigEndian.Uint32(from[1:chunkHeader]), from[chunkHeader:]
	if uint64(size) > uint64(len(body)) {
		return 0, nil, nil, fault.New(fault.Invalid, "a chunk announces %d bytes, but the frame has %d more", size, len(body))
	}
	return from[0] & chunkKind, body[:size:size], body[size:], nil
}

// appendChunk writes the header of a chunk, lets write append its content, and
// sets the length.
func appendChunk(dst []byte, kind byte, write func([]byte) ([]byte, error)) ([]byte, error) {
	start := len(dst) + chunkHeader
	out, err := write(append(dst, kind, 0, 0, 0, 0))
	if err != nil {
		return dst, err
	}
	size := len(out) - start
	if size > math.MaxInt32 {
		return dst, fault.New(fault.Invalid, "a chunk of %d bytes is too large for PCP 1", size)
	}
	binary.BigEndian.PutUint32(out[start-4:], uint32(size)) //nolint:gosec // compared above
	return out, nil
}
