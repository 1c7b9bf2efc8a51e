package websocket

import (
	"bytes"
	"context"
	"sync"
)

// readBytes is what one read takes: a full TLS record.
const readBytes = 16 << 10

// readsPerTurn lets others have their turn.
const readsPerTurn = 8

var readBuffers = sync.Pool{New: func() any { return new([readBytes]byte) }}

// readTurn reads a parked connection until there is nothing, or others have
// waited long enough.
func (c *conn) readTurn(ctx context.Context) {
	for range readsPerTurn {
		data, err := c.readSome()
		if !c.take(ctx, data) {
			return
		}
		switch {
		case err == nil:
		case isNothing(err):
			c.wait()
			return
		default:
			c.lost(err)
			return
		}
	}
	c.server.readers.add(c.readTurn)
}

// readSome reads what is there. Whoever takes it may wait for the store, with many others, and then holds no more than was read.
func (c *conn) readSome() ([]byte, error) {
	buffer := readBuffers.Get().(*[readBytes]byte)
	defer readBuffers.Put(buffer)
	n, err := c.raw.Read(buffer[:])
	return bytes.Clone(buffer[:n]), err
}

// readAll reads until the connection ends.
func (c *conn) readAll(ctx context.Context) {
	buffer := make([]byte, readBytes/4)
	for {
		n, err := c.raw.Read(buffer)
		if !c.take(ctx, buffer[:n]) {
			return
		}
		if err != nil {
			c.lost(err)
			return
		}
	}
}
