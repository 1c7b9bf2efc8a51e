package api

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"

	"github.com/tutti-project/tutti/internal/fault"
)

// ErrUnreachable is wrapped when no answer came at all.
var ErrUnreachable = errors.New("server not reachable")

// unreachable words an error of the connection: what was tried, why not, what to do.
func unreachable(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	hint := "is `tutti server` running there?"
	if NoName(err) {
		hint = "look for a mistake in it, or give the machine's address in /etc/hosts"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		hint = "give the CA's certificate with --ca-file (the server keeps it in DATA/ca/ca_crt.pem)"
	}
	return &fault.Error{Kind: fault.Unavailable, Detail: "cannot reach " + host + ": " + NoConnection(err), Hint: hint, Err: ErrUnreachable}
}

// NoName tells that the name of a server did not lead to an address.
func NoName(err error) bool {
	_, ok := errors.AsType[*net.DNSError](err)
	return ok
}

// NoConnection says why a connection did not come about or broke, in the words of those who run networks. What it does not
// know it says as it is.
func NoConnection(err error) string {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		err = inner.Err
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case unknown.IsNotFound:
			return "the name " + unknown.Name + " has no address in DNS or /etc/hosts"
		case unknown.IsTimeout:
			return "the name " + unknown.Name + " could not be looked up: the name server did not answer in time"
		}
		return "the name " + unknown.Name + " could not be looked up: the name server cannot be reached (" + unknown.Err + ")"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused: nothing listens there"
	case errors.Is(err, syscall.ECONNRESET):
		return "the connection was reset"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "there is no route to it"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed without an answer"
	case strings.Contains(err.Error(), "malformed HTTP"):
		return "what listens there does not speak HTTP"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "what listens there does not speak TLS"
	}
	return err.Error()
}
