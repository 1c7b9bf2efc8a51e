package tls

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"unsafe"
)

// A tls.Conn keeps for its whole life what only the handshake needed: the client's
// parsed certificate, the configuration made for it, and the buffers that grew to
// the size of the largest message. That is 7 KB of the 11.5 KB of an idle connection,
// which thousands of parked ones have no use for. crypto/tls has no way to let go of
// it, so this file reaches into its fields, by name and type. Where one is
// not what it was (a test tells, for each version of Go), everything is left alone.

// innards is where a tls.Conn has what can be let go of.
type innards struct {
	config    part[*tls.Config]
	peer      part[[]*x509.Certificate]
	chains    part[[][]*x509.Certificate]
	rawInput  part[bytes.Buffer] // bytes of records; input points into it
	input     part[bytes.Reader]
	handshake part[bytes.Buffer] // messages of the handshake
}

// part is a field of a tls.Conn.
type part[T any] struct{ offset uintptr }

func (p part[T]) of(t *tls.Conn) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(t), p.offset)) //nolint:gosec // find has looked at the field's type
}

// find looks for a field. *all becomes false if there is none of this name and type.
func find[T any](name string, all *bool) part[T] {
	field, found := reflect.TypeFor[tls.Conn]().FieldByName(name)
	if !found || field.Type != reflect.TypeFor[T]() {
		*all = false
	}
	return part[T]{field.Offset}
}

// lookInside returns nil if this version of crypto/tls is not as expected.
func lookInside() *innards {
	all := true
	in := &innards{
		config: find[*tls.Config]("config", &all), peer: find[[]*x509.Certificate]("peerCertificates", &all),
		chains: find[[][]*x509.Certificate]("verifiedChains", &all), rawInput: find[bytes.Buffer]("rawInput", &all),
		input: find[bytes.Reader]("input", &all), handshake: find[bytes.Buffer]("hand", &all),
	}
	if !all {
		return nil
	}
	return in
}

// ForgetPeer lets go of the client's certificate, for who has seen it and keeps the connection
// for long: the tls.Conn's ConnectionState does not know it any more. It is
// called once, when the handshake is over, and nobody reads or writes.
func (c *conn) ForgetPeer() {
	in := c.front.innards
	if in == nil {
		return
	}
	*in.peer.of(c.above), *in.chains.of(c.above) = nil, nil
	*in.config.of(c.above) = c.front.secrets.Load() // the one that all share
}

// ForgetBuffers lets go of what was allocated for reading, as far as nothing is in it. It is
// called by who reads, when there is nothing to read.
func (c *conn) ForgetBuffers() {
	in := c.front.innards
	if in == nil || in.input.of(c.above).Len() > 0 {
		return
	}
	*in.input.of(c.above) = bytes.Reader{} // it would hold on to rawInput's memory
	for _, buffer := range []*bytes.Buffer{in.rawInput.of(c.above), in.handshake.of(c.above)} {
		if buffer.Len() == 0 {
			*buffer = bytes.Buffer{}
		}
	}
}
